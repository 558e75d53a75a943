//! Capabilities, which client and server agree on in the handshake. Sources: MySQL's source
//! documentation, "Capabilities Flags"; for those above 32 bits, MariaDB's knowledge base,
//! "Connecting".
//!
//! A capability may change the shape of a response. So the gate passes only those it knows, even if
//! a server offers more. Known, but removed:
//! - `CLIENT_OPTIONAL_RESULTSET_METADATA` (1 << 25): result sets may come without their columns.
//!   Few clients ask for it, and MySQL's text about it contradicts its server.
//! - `CLIENT_ZSTD_COMPRESSION_ALGORITHM` (1 << 26): the gate decodes only zlib. Clients fall back
//!   to it.
//! - Bit 29, reserved to extend these 32.
//! - MariaDB's `COM_MULTI` (1 << 33): several commands in one packet. Servers since 10.3 lack it.

/// A set of capabilities: the protocol's 32 bits, with MariaDB's further ones above them.
pub type Capabilities = u64;

/// `CLIENT_MYSQL` (once `CLIENT_LONG_PASSWORD`): the sender has no MariaDB capabilities.
pub const MYSQL: Capabilities = 1;
/// A database follows in the client's answer.
pub const CONNECT_WITH_DB: Capabilities = 1 << 3;
/// After authentication everything is compressed with zlib.
pub const COMPRESS: Capabilities = 1 << 5;
/// The protocol since MySQL 4.1.
pub const PROTOCOL_41: Capabilities = 1 << 9;
/// Status flags show transactions.
pub const TRANSACTIONS: Capabilities = 1 << 13;
/// TLS begins before the client's answer.
pub const SSL: Capabilities = 1 << 11;
/// The authentication data has a one-byte length before it.
pub const SECURE_CONNECTION: Capabilities = 1 << 15;
/// A procedure may answer with several results.
pub const MULTI_RESULTS: Capabilities = 1 << 17;
/// The name of an authentication plugin follows.
pub const PLUGIN_AUTH: Capabilities = 1 << 19;
/// Attributes of the connection follow.
pub const CONNECT_ATTRS: Capabilities = 1 << 20;
/// The length of the authentication data is length-encoded.
pub const PLUGIN_AUTH_LENENC: Capabilities = 1 << 21;
/// OK packets report changes of the session.
pub const SESSION_TRACK: Capabilities = 1 << 23;
/// A result set ends with an OK packet, and no EOF packet follows the columns.
pub const DEPRECATE_EOF: Capabilities = 1 << 24;
/// Attributes precede the text of a statement.
pub const QUERY_ATTRIBUTES: Capabilities = 1 << 27;
/// MariaDB: reports of progress come as ERR packets with code 65535.
pub const MARIADB_PROGRESS: Capabilities = 1 << 32;
/// MariaDB: a byte after the number of columns shows whether their definitions follow.
pub const MARIADB_CACHE_METADATA: Capabilities = 1 << 36;

const OPTIONAL_RESULTSET_METADATA: Capabilities = 1 << 25;
const ZSTD: Capabilities = 1 << 26;
const EXTENSION: Capabilities = 1 << 29;
const REMEMBER_OPTIONS: Capabilities = 1 << 31;
/// Bulk execution, extended metadata, cached metadata, and results for each unit of a bulk.
const MARIADB_KNOWN: Capabilities = MARIADB_PROGRESS | 1 << 34 | 1 << 35 | 1 << 36 | 1 << 37;

/// The capabilities that the gate passes: the 32 bits except those it removes, and MariaDB's known ones.
pub const KNOWN: Capabilities = ((REMEMBER_OPTIONS << 1) - 1 - STRUCK) | MARIADB_KNOWN;
const STRUCK: Capabilities = OPTIONAL_RESULTSET_METADATA | ZSTD | EXTENSION;

/// Capabilities that must be the same on a pooled connection as at its client, because they change the server's
/// responses or input. They are: found instead of changed rows, long flags, local files, spaces before
/// parentheses, the timeout of interactive clients, several statements and results, and no EOF packets.
pub const OF_POOLED: Capabilities =
    1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16 | MULTI_RESULTS | 1 << 18 | DEPRECATE_EOF;
/// The other capabilities that a pool offers a client.
pub const OF_OPENING: Capabilities = MYSQL
    | CONNECT_WITH_DB
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC;
