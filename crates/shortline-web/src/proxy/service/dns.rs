//! A question for SRV records, and what an answer says (RFC 1035, 4; RFC 2782). The simple-dns crate parses the message. Here is what
//! is taken of it: an answer to this very question, records of its name, or of the name that it is another one for (CNAME), and
//! targets that can be names of hosts.

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, Question, RCODE, TYPE};

/// How many names may stand for each other.
const ALIASES_MAX: usize = 8;
/// The most records that are looked at.
const RECORDS_MAX: usize = 1024;
/// The longest name of a host (RFC 1035, 2.3.4).
const HOST_BYTES_MAX: usize = 253;

/// What a name server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// These records.
    Found(Found),
    /// The answer did not fit.
    Truncated,
}

/// The records of a service, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The servers, by priority.
    pub targets: Vec<Target>,
    /// For how many seconds they hold.
    pub ttl_s: u32,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The smallest is asked first.
    pub priority: u16,
    /// Its part of the requests.
    pub weight: u16,
    /// The name of the host.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// An answer that says nothing of a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// Not a name.
    #[error("`{0}` is no name of DNS")]
    Name(String),
    /// Not a message of DNS.
    #[error("its answer is malformed")]
    Malformed,
    /// Not an answer to this question.
    #[error("its answer is to another question")]
    Foreign,
    /// No such name.
    #[error("there is no such name")]
    NoName,
    /// The server does not want to, or cannot.
    #[error("it answers {0}")]
    Refused(String),
    /// There is the name, but it has none of these records.
    #[error("the name has no SRV record with a host and a port")]
    NoRecords,
    /// The answer by TCP was cut short, too.
    #[error("its answer is cut short")]
    CutShort,
}

/// The question.
///
/// # Errors
/// [`DnsError::Name`]
pub fn question(id: u16, name: &str) -> Result<Vec<u8>, DnsError> {
    let wrong = || DnsError::Name(name.escape_debug().to_string());
    let asked = Name::new(name).map_err(|_| wrong())?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let question = Question::new(asked, TYPE::SRV.into(), CLASS::IN.into(), false);
    packet.questions.push(question);
    packet.build_bytes_vec().map_err(|_| wrong())
}

/// What an answer to the question with this number says of the name.
///
/// # Errors
/// [`DnsError`]
pub fn read(answer: &[u8], id: u16, name: &str) -> Result<Said, DnsError> {
    let packet = Packet::parse(answer).map_err(|_| DnsError::Malformed)?;
    let is_asked = |question: &Question<'_>| {
        is_same(&question.qname, name) && question.qtype == QTYPE::TYPE(TYPE::SRV)
    };
    let is_answer = packet.id() == id && packet.has_flags(PacketFlag::RESPONSE);
    let asked = !packet.questions.is_empty() && packet.questions.iter().all(is_asked);
    if !is_answer || !asked {
        return Err(DnsError::Foreign);
    }
    match packet.rcode() {
        RCODE::NoError => {}
        RCODE::NameError => return Err(DnsError::NoName),
        other => return Err(DnsError::Refused(format!("{other:?}"))),
    }
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return Ok(Said::Truncated);
    }
    found(&packet, name).map(Said::Found)
}

fn found(packet: &Packet<'_>, name: &str) -> Result<Found, DnsError> {
    let mut owner = name.to_owned();
    let mut ttl_s = u32::MAX;
    let records = || packet.answers.iter().take(RECORDS_MAX);
    for _ in 0..ALIASES_MAX {
        let alias = records().find_map(|record| match &record.rdata {
            RData::CNAME(alias) if is_same(&record.name, &owner) => Some((alias, record.ttl)),
            _ => None,
        });
        let Some((alias, alias_ttl_s)) = alias else {
            break;
        };
        owner = alias.0.to_string();
        ttl_s = ttl_s.min(alias_ttl_s);
    }
    let mut targets = Vec::new();
    for record in records().filter(|record| record.class == CLASS::IN) {
        let RData::SRV(service) = &record.rdata else {
            continue;
        };
        let host = service.target.to_string().to_ascii_lowercase();
        if is_same(&record.name, &owner) && service.port > 0 && is_host(&host) {
            ttl_s = ttl_s.min(record.ttl);
            targets.push(Target {
                priority: service.priority,
                weight: service.weight,
                host,
                port: service.port,
            });
        }
    }
    targets.sort_unstable();
    targets.dedup();
    match targets.is_empty() {
        true => Err(DnsError::NoRecords),
        false => Ok(Found { targets, ttl_s }),
    }
}

fn is_same(ours: &Name<'_>, theirs: &str) -> bool {
    ours.to_string().eq_ignore_ascii_case(theirs)
}

/// Whether a text can be the name of a host. `.`, which says that there is no such service, is none.
fn is_host(text: &str) -> bool {
    let of_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(of_label);
    text.len() <= HOST_BYTES_MAX && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{CNAME, SRV};

    use super::*;

    const NAME: &str = "_http._tcp.example.org";

    fn name(text: &'static str) -> Name<'static> {
        Name::new(text).unwrap()
    }

    fn record(owner: &'static str, ttl_s: u32, rdata: RData<'static>) -> ResourceRecord<'static> {
        ResourceRecord::new(name(owner), CLASS::IN, ttl_s, rdata)
    }

    fn srv(priority: u16, weight: u16, port: u16, target: &'static str) -> RData<'static> {
        RData::SRV(SRV {
            priority,
            weight,
            port,
            target: name(target),
        })
    }

    /// An answer with these records, otherwise as asked.
    fn answer(records: Vec<ResourceRecord<'static>>, flags: PacketFlag, rcode: RCODE) -> Vec<u8> {
        let mut packet = Packet::new_reply(7);
        packet.set_flags(flags | PacketFlag::RESPONSE);
        *packet.rcode_mut() = rcode;
        let question = Question::new(name(NAME), TYPE::SRV.into(), CLASS::IN.into(), false);
        packet.questions.push(question);
        packet.answers = records;
        packet.build_bytes_vec_compressed().unwrap()
    }

    fn sound(records: Vec<ResourceRecord<'static>>) -> Result<Said, DnsError> {
        read(
            &answer(records, PacketFlag::empty(), RCODE::NoError),
            7,
            NAME,
        )
    }

    #[test]
    fn the_records_of_the_name_are_found() {
        let said = sound(vec![
            record(NAME, 60, srv(20, 0, 81, "b.example.org")),
            record(NAME, 30, srv(10, 5, 80, "A.example.org")),
            record("_http._tcp.other.org", 1, srv(0, 5, 80, "evil.org")),
            record(NAME, 1, srv(0, 5, 0, "none.example.org")),
        ]);
        let target = |priority, weight, host: &str, port| Target {
            priority,
            weight,
            host: host.to_owned(),
            port,
        };
        let expected = Found {
            targets: vec![
                target(10, 5, "a.example.org", 80),
                target(20, 0, "b.example.org", 81),
            ],
            ttl_s: 30,
        };
        assert_eq!(said, Ok(Said::Found(expected)));
    }

    #[test]
    fn another_name_may_stand_for_it() {
        let alias = |owner, other, ttl_s| record(owner, ttl_s, RData::CNAME(CNAME(name(other))));
        let said = sound(vec![
            alias(NAME, "one.example.org", 9),
            alias("one.example.org", "two.example.org", 8),
            record("two.example.org", 60, srv(1, 1, 80, "a")),
        ]);
        assert!(matches!(said, Ok(Said::Found(found)) if found.ttl_s == 8));
        let endless = sound(vec![
            alias(NAME, "one.example.org", 9),
            alias("one.example.org", NAME, 9),
        ]);
        assert_eq!(endless, Err(DnsError::NoRecords));
    }

    #[test]
    fn what_says_nothing_of_the_service_is_an_error() {
        let none = PacketFlag::empty();
        let a_record = || vec![record(NAME, 60, srv(1, 1, 80, "a"))];
        assert_eq!(sound(Vec::new()), Err(DnsError::NoRecords));
        let named = answer(Vec::new(), none, RCODE::NameError);
        assert_eq!(read(&named, 7, NAME), Err(DnsError::NoName));
        let refused = answer(Vec::new(), none, RCODE::Refused);
        assert!(matches!(read(&refused, 7, NAME), Err(DnsError::Refused(_))));
        let cut = answer(a_record(), PacketFlag::TRUNCATION, RCODE::NoError);
        assert_eq!(read(&cut, 7, NAME), Ok(Said::Truncated));
        let whole = answer(a_record(), none, RCODE::NoError);
        assert_eq!(read(&whole, 8, NAME), Err(DnsError::Foreign));
        assert_eq!(
            read(&whole, 7, "_http._tcp.example.com"),
            Err(DnsError::Foreign)
        );
        let asked = question(7, NAME).unwrap();
        assert_eq!(read(&asked, 7, NAME), Err(DnsError::Foreign));
        for end in 0..whole.len() {
            assert!(read(&whole[..end], 7, NAME).is_err(), "{end}");
        }
    }

    #[test]
    fn a_question_is_one_of_dns() {
        // RFC 1035, 4: the header with recursion desired, one question for SRV (33), class IN.
        let asked = question(0x1234, "_a.b").unwrap();
        let expected = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x02_a\x01b\0\0\x21\0\x01";
        assert_eq!(asked, expected);
        assert!(question(1, &"a".repeat(64)).is_err());
    }

    #[test]
    fn a_host_is_a_name_that_can_be_looked_up() {
        for host in ["a", "a-1.b_c.example.org", "192.0.2.1"] {
            assert!(is_host(host), "{host}");
        }
        let long = "a.".repeat(130);
        for other in ["", ".", "a..b", "a b", "a/b", "ä", "a:80", "[::1]", &long] {
            assert!(!is_host(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200), at: usize, byte: u8) {
            let _ = read(&bytes, 7, NAME);
            let mut whole = answer(
                vec![record(NAME, 60, srv(1, 1, 80, "a.example.org"))],
                PacketFlag::empty(),
                RCODE::NoError,
            );
            let length = whole.len();
            whole[at % length] = byte;
            let _ = read(&whole, 7, NAME);
            whole.append(&mut bytes);
            let _ = read(&whole, 7, NAME);
        }
    }
}
