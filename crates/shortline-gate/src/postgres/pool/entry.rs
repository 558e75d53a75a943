//! A client enters the pool: it is authenticated, and gets the parameters of its session. This needs a connection
//! only for the first client with the same wishes.

use shortline_sched::admission::Refusal;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;

use super::super::Shared;
use super::super::reply::{Complaint, message, ready_for_query};
use super::super::startup::Startup;
use super::super::{conversation::Status, scram};
use super::ask::{AskError, ask_on};
use super::backend::{AcquireError, Known};
use super::greeting::{Greeting, GreetingError};
use super::login::{Kind, Login, LoginError, Parameters};
use super::lookup::LookupError;
use super::protocol::{Member, Pooled, begins_read_only};
use super::settings::Settings;
use super::{Pool, Target};
use crate::GateClient;
use crate::classify::ClientNames;
use crate::relay::{Entry, Handle, Stream};

/// Parameters of a StartupMessage that are set on each connection that the client gets. The names are those that
/// the server reports.
const FOLLOWED: [&str; 4] = ["client_encoding", "DateStyle", "IntervalStyle", "TimeZone"];
const APPLICATION: &str = "application_name";
/// The number of different wishes that are remembered.
const GREETINGS_MAX: usize = 1024;
/// The number of different names of applications that are remembered for the same wishes.
const APPLICATIONS_MAX: usize = 16;
/// The longest of them that is remembered, in bytes (PostgreSQL's NAMEDATALEN - 1).
const APPLICATION_BYTES_MAX: usize = 63;
/// The minor version of the protocol that the gate speaks.
const MINOR: u16 = 0;

/// Why a client gets no session.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// Its authentication failed.
    #[error(transparent)]
    Greeting(#[from] GreetingError),
    /// The server refused one of its parameters.
    #[error("{reason}")]
    Refused {
        /// The server's SQLSTATE.
        sqlstate: String,
        /// The server's message.
        reason: String,
    },
    /// The lookup of its user failed.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// There is no connection.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// Its tenant has reached its limit of connections.
    #[error(transparent)]
    TooMany(#[from] Refusal),
    /// It left.
    #[error("the client left as it was let in")]
    Left,
}

impl EntryError {
    /// The error for the client. None if it has left.
    pub fn complaint(&self) -> Option<Complaint> {
        match self {
            Self::Greeting(error) => error.complaint(),
            // The cause is always one of the client's parameters.
            Self::Refused { reason, .. } => Some(Complaint::new("22023", reason.clone())),
            // The reason is for the operator, and is in the log.
            Self::Lookup(_) => Some(Complaint::new("08006", "the gate cannot look the user up")),
            Self::Acquire(error) => Some(complaint_of(error)),
            Self::TooMany(refusal) => Some(Complaint::new("53300", refusal.to_string())),
            Self::Left => None,
        }
    }
}

/// The error for a client that does not get a connection.
pub(super) fn complaint_of(error: &AcquireError) -> Complaint {
    match error {
        AcquireError::Login(error) => error.complaint(),
        AcquireError::Busy { .. } => Complaint::new("53300", error.to_string()),
        AcquireError::NoPrimary(_) => Complaint::new("57P03", error.to_string()),
    }
}

/// A session that is ready to begin.
pub struct Entered {
    /// Its protocol.
    pub protocol: Pooled,
    /// The bytes that the client has already sent.
    pub ahead: Vec<u8>,
    /// Its entry among the waits that cancel requests can end.
    pub entry: Entry<Box<[u8]>>,
}

/// The parameters and settings for clients, by their wishes.
#[derive(Debug, Default)]
pub(super) struct Greetings(Mutex<HashMap<Wishes, Arc<Welcome>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wishes {
    kind: Arc<Kind>,
    /// The values of parameters in `FOLLOWED`, by name.
    followed: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug)]
struct Welcome {
    /// One for all with these wishes.
    kind: Arc<Kind>,
    parameters: Parameters,
    settings: Settings,
    /// The same settings with a name of an application, by that name.
    named: Mutex<HashMap<Vec<u8>, Settings>>,
}

impl Welcome {
    /// The settings of a client that gives this name of its application. Clients that give the same one share them.
    fn settings_of(&self, application: Option<&[u8]>) -> Settings {
        let Some(application) = application else {
            return self.settings.clone();
        };
        let mut named = self.named.lock();
        if let Some(known) = named.get(application) {
            return known.clone();
        }
        let mut settings = self.settings.clone();
        settings.report(APPLICATION.as_bytes(), application);
        if application.len() <= APPLICATION_BYTES_MAX {
            if named.len() >= APPLICATIONS_MAX {
                named.clear();
            }
            named.insert(application.to_vec(), settings.clone());
        }
        settings
    }
}

/// Authenticates the client and makes its session.
///
/// # Errors
/// [`EntryError`]
pub(in super::super) async fn open(
    shared: &Arc<Shared>,
    pool: &Arc<Pool>,
    client: &mut Stream,
    startup: &Startup,
    names: Arc<ClientNames>,
    handle: &Arc<Handle>,
    account: &mut GateClient,
) -> Result<Entered, EntryError> {
    let mut ahead = BytesMut::new();
    let login = authenticate(pool, client, startup, &names, &mut ahead).await?;
    shared.join(account, &names)?;
    let (user, database) = user_and_database(&names);
    let (wishes, application) = wishes(startup, user.to_owned(), database.to_owned());
    let told = told(pool, &wishes, &login).await?;
    let settings = told.settings_of(application.as_deref());
    let mut parameters = told.parameters.clone();
    if let Some(name) = application {
        parameters.insert(APPLICATION.as_bytes().to_vec(), name);
    }
    let key: Box<[u8]> = Box::new(scram::random::<8>());
    welcome(client, &parameters, Some(&key)).await?;
    let target = Arc::<Target>::default();
    pool.targets.lock().insert(key.clone(), Arc::clone(&target));
    let terms = (shared.config.relay.terms_of)(&names.client());
    let member = Member {
        is_of_transactions: pool.common.lends_for_transactions(&terms),
        pool: Arc::clone(pool),
        kind: Arc::clone(&told.kind),
        login,
        target,
        key: key.clone(),
        begins_read_only: begins_read_only(&parameters),
    };
    Ok(Entered {
        protocol: Pooled::new(shared, names, member, settings),
        ahead: ahead.into(),
        entry: shared.waits.register(key, handle),
    })
}

/// Authenticates a client of the pool. Returns the login that the gate may use for it.
pub(super) async fn authenticate(
    pool: &Arc<Pool>,
    client: &mut Stream,
    startup: &Startup,
    names: &ClientNames,
    ahead: &mut BytesMut,
) -> Result<Login, EntryError> {
    negotiate(client, startup).await?;
    let (user, database) = user_and_database(names);
    let users = pool.common.users();
    let mut known = users.get(user);
    let found;
    if let (None, Some(lookup)) = (known, &pool.lookup) {
        found = lookup.find(pool, database, user).await?;
        known = found.as_ref();
    }
    let greeting = Greeting {
        client,
        user,
        ahead,
    };
    Ok(greeting.ask(known, &pool.secret).await?)
}

/// The user and the database that a client requests.
pub(super) fn user_and_database(names: &ClientNames) -> (&str, &str) {
    let user = names.user.as_deref().unwrap_or_default();
    (user, names.database.as_deref().unwrap_or(user))
}

/// Authenticates a client of the admin database. Only users in the file have access to it.
///
/// # Errors
/// The error for a client that is refused.
pub(in super::super) async fn identify(
    pool: &Pool,
    client: &mut Stream,
    user: &str,
) -> Result<(), Complaint> {
    let mut ahead = BytesMut::new();
    let greeting = Greeting {
        client,
        user,
        ahead: &mut ahead,
    };
    let users = pool.common.users();
    let asked = greeting.ask(users.get(user), &pool.secret).await;
    let left = || Complaint::new("08006", "the client left");
    asked.map_err(|error| error.complaint().unwrap_or_else(left))?;
    if ahead.is_empty() {
        Ok(())
    } else {
        let message = "expected nothing before the first ReadyForQuery";
        Err(Complaint::new("08P01", message))
    }
}

/// Sends NegotiateProtocolVersion to a client that asks for a newer version or for options.
async fn negotiate(client: &mut Stream, startup: &Startup) -> Result<(), EntryError> {
    let unknown: Vec<&[u8]> = startup
        .parameters()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with(b"_pq_."))
        .collect();
    if startup.minor() == MINOR && unknown.is_empty() {
        return Ok(());
    }
    let count = u32::try_from(unknown.len()).expect("a packet has room for few");
    let mut body = vec![0, 3];
    body.extend(MINOR.to_be_bytes());
    body.extend(count.to_be_bytes());
    for name in unknown {
        body.extend_from_slice(name);
        body.push(0);
    }
    say(client, &message(b'v', &[&body])).await
}

/// The client's wishes: the kind of its connections, and the values to set on them. Also its `application_name`.
fn wishes(startup: &Startup, user: String, database: String) -> (Wishes, Option<Vec<u8>>) {
    let (mut own, mut followed, mut application) = (BTreeMap::new(), BTreeMap::new(), None);
    for (name, value) in startup.parameters() {
        let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
        if let Some(known) = FOLLOWED.iter().find(|known| is(known)) {
            followed.insert(known.as_bytes().to_vec(), value.to_vec());
        } else if is(&APPLICATION) {
            // PostgreSQL does the same: a name is printable ASCII.
            let clean = |byte: &u8| {
                if (b' '..=b'~').contains(byte) {
                    *byte
                } else {
                    b'?'
                }
            };
            application = Some(value.iter().map(clean).collect());
        } else if !["user", "database", "replication"].iter().any(is) && !name.starts_with(b"_pq_.")
        {
            own.insert(name.to_vec(), value.to_vec());
        }
    }
    let kind = Kind {
        user,
        database,
        startup: own,
    };
    let wishes = Wishes {
        kind: Arc::new(kind),
        followed,
    };
    (wishes, application)
}

/// The parameters and settings for clients with these wishes. Takes a connection if they are not known yet.
async fn told(
    pool: &Arc<Pool>,
    wishes: &Wishes,
    login: &Login,
) -> Result<Arc<Welcome>, EntryError> {
    let known = pool.greetings.0.lock().get(wishes).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let nodes = Arc::clone(&pool.common.nodes);
    let acquiring = nodes.acquire_any(Arc::clone(&wishes.kind), login.clone());
    let (mut held, mut stream) = acquiring.await?;
    let mut wanted = Settings::default();
    for (name, value) in &wishes.followed {
        wanted.report(name, value);
    }
    let mut parameters = reported_now(&held.known);
    for query in wanted.changes_from(&held.known.settings) {
        let answer = ask_on(&mut held, &mut stream, &query)
            .await
            .map_err(|error| match error {
                // What says that the server ends (57P01 to 57P03) says nothing of the parameters.
                AskError::Refused { sqlstate, reason } if !sqlstate.starts_with("57P0") => {
                    EntryError::Refused { sqlstate, reason }
                }
                AskError::Refused { .. }
                | AskError::Left
                | AskError::Frame(_)
                | AskError::Unasked(_) => AcquireError::from(LoginError::Left).into(),
            })?;
        parameters.extend(answer.parameters);
    }
    let mut settings = Settings::default();
    for name in wishes.followed.keys() {
        if let Some(value) = parameters.get(name) {
            settings.follow(name, value, &held.known.parameters);
        }
    }
    held.known.settings = settings.clone();
    held.give_back(stream);
    let told = Arc::new(Welcome {
        kind: Arc::clone(&wishes.kind),
        parameters,
        settings,
        named: Mutex::default(),
    });
    let mut greetings = pool.greetings.0.lock();
    if greetings.len() >= GREETINGS_MAX {
        greetings.clear();
    }
    greetings.insert(wishes.clone(), Arc::clone(&told));
    Ok(told)
}

/// The parameters as the server last reported them on this connection. It reports only what changes, so what the last
/// session has set is not what it said at login.
fn reported_now(known: &Known) -> Parameters {
    let mut parameters = (*known.parameters).clone();
    for (name, value) in &mut parameters {
        if let Some(now) = known.settings.value(name) {
            *value = now.to_vec();
        }
    }
    parameters
}

/// Sends a client the messages up to its first ReadyForQuery.
pub(super) async fn welcome(
    client: &mut Stream,
    parameters: &Parameters,
    key: Option<&[u8]>,
) -> Result<(), EntryError> {
    let mut said = Vec::new();
    for (name, value) in parameters {
        said.extend(message(b'S', &[name, b"\0", value, b"\0"]));
    }
    if let Some(key) = key {
        said.extend(message(b'K', &[key]));
    }
    said.extend(ready_for_query(Status::Idle));
    say(client, &said).await
}

async fn say(client: &mut Stream, bytes: &[u8]) -> Result<(), EntryError> {
    let sent = async {
        client.write_all(bytes).await?;
        client.flush().await
    };
    sent.await.map_err(|_| EntryError::Left)
}
