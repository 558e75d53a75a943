//! What the messages of HTTP/1.1 have in common, a client's and a backend's (RFC 9112).
//!
//! | module | does |
//! |---|---|
//! | `head` | fields in a head as they are read and written, and what is wrong with a head |
//! | `memory` | the fields of the heads before, of which most come again |
//! | `chunks` | takes a chunked body apart, with its trailers |
//! | `output` | what is to be written, and how far that is |

pub mod chunks;
pub mod head;
pub mod memory;
pub mod output;
