//! The tables of flags inside pages that people write. A table lies between two markers:
//!
//! ```text
//! <!-- flags: uplink -->
//! <!-- end of flags -->
//! ```
//!
//! What each one shows comes from the definition of the flags: the flag, its key in the configuration file, its
//! default, and the whole of its help.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use clap::{Arg, ArgAction, Args, Command};
use serde::de::{Deserialize, Deserializer, Visitor};

use super::{cell, flag_of, meaning_and_default};
use crate::file::Listen;
use crate::serve::acme::keys::AcmeKeys;
use crate::serve::options::{
    AdminOptions, CacheKeys, ClientOptions, HandoverOptions, LimitOptions, LogOptions, SiteKeys,
    UplinkOptions,
};

const START: &str = "<!-- flags: ";
const START_ENDS: &str = " -->\n";
const END: &str = "<!-- end of flags -->\n";

/// The tables of docs/configuration.md, by what their markers say.
pub(super) fn of_configuration(program: &Command) -> BTreeMap<String, String> {
    let serve = found(program, "serve");
    // The last three, `--tls-auto`, `--config` and `--check`, have no key.
    let addresses = with_heading(serve, "Addresses");
    // Only the file has these.
    let listen = keys::<Listen>()
        .into_iter()
        .filter(|key| !["mode", "tls", "proxy-from"].contains(key));
    let listen = listen.map(|key| format!("`{key}`"));
    let keys_of_listen = listen.chain([(); 3].map(|()| String::new())).collect();
    let mut admin = rows::<AdminOptions>("admin.");
    admin.extend(rows::<LogOptions>("log."));
    let install = found(found(program, "uplink"), "install");
    BTreeMap::from([
        ("listen".into(), with_keys(addresses, keys_of_listen)),
        ("uplink".into(), of_rows(rows::<UplinkOptions>(""))),
        ("site".into(), of_rows(rows::<SiteKeys>(""))),
        ("cache".into(), of_rows(rows::<CacheKeys>(""))),
        ("clients".into(), of_rows(rows::<ClientOptions>(""))),
        ("limits".into(), of_rows(rows::<LimitOptions>(""))),
        ("acme".into(), of_rows(rows::<AcmeKeys>(""))),
        ("admin and log".into(), of_rows(admin)),
        ("handover".into(), of_rows(rows::<HandoverOptions>(""))),
        ("uplink install".into(), without_keys(shown(install))),
    ])
}

/// The tables of docs/gate.md: one for each heading of the help.
pub(super) fn of_gate(program: &Command) -> BTreeMap<String, String> {
    let gate = found(program, "gate");
    let headings = shown(gate).filter_map(Arg::get_help_heading);
    headings
        .map(|heading| {
            let table = without_keys(with_heading(gate, heading).into_iter());
            (heading.to_owned(), table)
        })
        .collect()
}

/// The page with each table made anew. Every marker names a table, and every table has its markers.
pub(super) fn filled(page: &str, tables: &BTreeMap<String, String>) -> String {
    let mut named = Vec::new();
    let mut parts = page.split(START);
    let mut filled = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(START_ENDS).expect("a marker has an end");
        let (_, behind) = rest.split_once(END).expect("a table has an end");
        let table = tables.get(name);
        let table = table.unwrap_or_else(|| panic!("no table of flags is called `{name}`"));
        let _ = write!(filled, "{START}{name}{START_ENDS}\n{table}\n{END}{behind}");
        named.push(name);
    }
    for name in tables.keys() {
        assert!(named.contains(&name.as_str()), "a table is missing: {name}");
    }
    filled
}

fn found<'a>(command: &'a Command, name: &str) -> &'a Command {
    command.find_subcommand(name).unwrap()
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let arguments = command.get_arguments();
    arguments.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"))
}

fn with_heading<'a>(command: &'a Command, heading: &str) -> Vec<&'a Arg> {
    let is_below = |arg: &&Arg| arg.get_help_heading() == Some(heading);
    shown(command).filter(is_below).collect()
}

/// A flag, and the cell that names its key.
type Row = (Arg, String);

/// The flags of `Options` in the order of their definition, which is also the order of the keys.
fn rows<Options: Args + for<'de> Deserialize<'de>>(prefix: &str) -> Vec<Row> {
    let command = Options::augment_args(Command::new("options"));
    let flags: Vec<&Arg> = command.get_arguments().collect();
    // Keys that only the file has come last.
    let keys = keys::<Options>();
    assert!(flags.len() <= keys.len(), "{keys:?}");
    let both = flags.into_iter().zip(keys);
    both.map(|(flag, key)| (flag.clone(), key_cell(flag, &format!("{prefix}{key}"))))
        .collect()
}

fn key_cell(flag: &Arg, key: &str) -> String {
    match flag.get_action() {
        ArgAction::Append => format!("`{key}`, a list"),
        _ => format!("`{key}`"),
    }
}

fn of_rows(rows: Vec<Row>) -> String {
    let (flags, keys): (Vec<Arg>, Vec<String>) = rows.into_iter().unzip();
    with_keys(flags.iter().collect(), keys)
}

fn with_keys(flags: Vec<&Arg>, keys: Vec<String>) -> String {
    assert_eq!(flags.len(), keys.len(), "{keys:?}");
    let mut table = "| flag | key | default | meaning |\n|---|---|---|---|\n".to_owned();
    for (flag, key) in flags.into_iter().zip(keys) {
        let (name, default, meaning) = cells(flag);
        let _ = writeln!(table, "| {name} | {key} | {default} | {meaning} |");
    }
    table
}

fn without_keys<'a>(flags: impl Iterator<Item = &'a Arg>) -> String {
    let mut table = "| flag | default | meaning |\n|---|---|---|\n".to_owned();
    for flag in flags {
        let (name, default, meaning) = cells(flag);
        let _ = writeln!(table, "| {name} | {default} | {meaning} |");
    }
    table
}

/// What the flag is called, its default, and the whole of its help as one paragraph.
fn cells(flag: &Arg) -> (String, String, String) {
    let (meaning, default) = meaning_and_default(flag);
    let long = flag.get_long_help().map(ToString::to_string);
    let further = long.as_deref().and_then(|long| long.split_once("\n\n"));
    let meaning = match further {
        Some((_, further)) => format!("{meaning}. {further}"),
        None => meaning,
    };
    (
        format!("`{}`", cell(&flag_of(flag))),
        cell(&default),
        cell(&meaning),
    )
}

/// The keys that serde reads into a `T`, in the order of their definition.
fn keys<T: for<'de> Deserialize<'de>>() -> Vec<&'static str> {
    match T::deserialize(Keys) {
        Err(Found(keys)) => keys.to_vec(),
        Ok(_) => panic!("only a struct has keys"),
    }
}

/// Asked to fill a struct, it ends with the names of the struct's fields.
struct Keys;

#[derive(Debug)]
struct Found(&'static [&'static str]);

impl<'de> Deserializer<'de> for Keys {
    type Error = Found;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        keys: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Found> {
        Err(Found(keys))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Found> {
        Err(Found(&[]))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Found {}

impl serde::de::Error for Found {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self(&[])
    }
}
