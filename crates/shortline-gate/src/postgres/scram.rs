//! Both ends of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding. A pool authenticates its
//! clients with it, and logs in at the backend with it.
//!
//! No password is needed to authenticate a client: the stored keys ([`Keys`]) suffice. A valid proof
//! reveals the client's [`ClientKey`]. With that the gate can log in at a backend that stores the same
//! keys, as PgBouncer does.

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// The mechanism's name.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// The number of rounds for new keys: PostgreSQL's default.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");
/// The most rounds that are accepted. Otherwise a backend could keep the gate busy.
const ITERATIONS_MAX: u32 = 1_000_000;
const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 18;
/// The longest message of an exchange, in bytes.
const MESSAGE_BYTES_MAX: usize = 2048;

type Key = [u8; KEY_BYTES];

/// The secret that proves a client's identity.
pub type ClientKey = Key;

/// The stored keys of a user. They suffice to check a proof, but not to make one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    salt: Vec<u8>,
    iterations: NonZeroU32,
    stored: Key,
    server: Key,
}

/// A secret that can make a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Secret {
    /// The password itself.
    Password(String),
    /// The stored keys and the client's key.
    ClientKey(Box<(Keys, ClientKey)>),
}

/// Why an exchange failed. It does not show whether the user or the password is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The bytes are not a SCRAM message.
    #[error("malformed SCRAM message")]
    Malformed,
    /// The client asks for channel binding.
    #[error("the client asks for channel binding, which was not offered")]
    ChannelBinding,
    /// The proof is wrong.
    #[error("the proof is wrong")]
    Proof,
    /// The backend's keys differ from those that authenticated the client.
    #[error(
        "the backend has another SCRAM secret for this user than the gate: copy it from pg_authid, or give the password"
    )]
    OtherKeys,
    /// The backend's signature is wrong.
    #[error("the backend cannot show that it knows the password")]
    NotTheServer,
}

impl Keys {
    /// Keys of a password, with a new salt.
    pub fn of_password(password: &str) -> Self {
        Self::derive(password, &random::<SALT_BYTES>(), ITERATIONS).0
    }

    /// Keys for an unknown user, for which no proof exists. The same name always gets the same salt.
    /// Otherwise a second attempt would show that the user does not exist.
    pub fn of_nobody(name: &[u8], secret: &Key) -> Self {
        let salt = mac(secret, name);
        Self {
            salt: salt[..SALT_BYTES].to_vec(),
            iterations: ITERATIONS,
            stored: random(),
            server: random(),
        }
    }

    /// Reads keys as PostgreSQL stores them: `SCRAM-SHA-256$4096:SALT$STORED:SERVER`.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
        let (cost, keys) = rest.split_once('$')?;
        let (iterations, salt) = cost.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| STANDARD.decode(text).ok()?.try_into().ok();
        Some(Self {
            salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            iterations: iterations.parse().ok().filter(is_bearable)?,
            stored: key(stored)?,
            server: key(server)?,
        })
    }

    fn derive(password: &str, salt: &[u8], iterations: NonZeroU32) -> (Self, ClientKey) {
        let prepared = stringprep::saslprep(password);
        // If SASLprep fails, PostgreSQL uses the password unchanged.
        let password = prepared.as_deref().unwrap_or(password);
        let mut salted = [0; KEY_BYTES];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(
            algorithm,
            iterations,
            salt,
            password.as_bytes(),
            &mut salted,
        );
        let client = mac(&salted, b"Client Key");
        let keys = Self {
            salt: salt.to_vec(),
            iterations,
            stored: hash(&client),
            server: mac(&salted, b"Server Key"),
        };
        (keys, client)
    }
}

/// The end that authenticates the client.
pub struct Server {
    keys: Keys,
    is_bound: bool,
    nonce: String,
    /// The messages so far that both ends sign.
    said: String,
}

impl Server {
    /// Reads the client's first message. Returns the answer.
    ///
    /// # Errors
    /// [`ScramError`]
    pub fn begin(keys: Keys, first: &[u8]) -> Result<(Self, String), ScramError> {
        let first = text(first)?;
        let (flag, rest) = first.split_once(',').ok_or(ScramError::Malformed)?;
        let is_bound = match flag {
            "n" => false,
            "y" => true,
            flag if flag.starts_with("p=") => return Err(ScramError::ChannelBinding),
            _ => return Err(ScramError::Malformed),
        };
        let (_authorization, bare) = rest.split_once(',').ok_or(ScramError::Malformed)?;
        let client_nonce = attribute(bare, 'r').ok_or(ScramError::Malformed)?;
        let nonce = format!("{client_nonce}{}", STANDARD.encode(random::<NONCE_BYTES>()));
        let salt = STANDARD.encode(&keys.salt);
        let answer = format!("r={nonce},s={salt},i={}", keys.iterations);
        let said = format!("{bare},{answer}");
        let server = Self {
            keys,
            is_bound,
            nonce,
            said,
        };
        Ok((server, answer))
    }

    /// Checks the client's proof. Returns the last message, and the secret that the proof revealed.
    ///
    /// # Errors
    /// [`ScramError`]
    pub fn finish(self, last: &[u8]) -> Result<(String, Secret), ScramError> {
        let last = text(last)?;
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or(ScramError::Malformed)?;
        let header = STANDARD.encode(if self.is_bound { "y,," } else { "n,," });
        let is_ours = attribute(without_proof, 'c') == Some(&header)
            && attribute(without_proof, 'r') == Some(&self.nonce);
        let proof: Key = STANDARD
            .decode(proof)
            .ok()
            .and_then(|proof| proof.try_into().ok())
            .ok_or(ScramError::Malformed)?;
        let said = format!("{},{without_proof}", self.said);
        let client = xor(proof, mac(&self.keys.stored, said.as_bytes()));
        let is_known: bool = hash(&client).ct_eq(&self.keys.stored).into();
        if !is_ours || !is_known {
            return Err(ScramError::Proof);
        }
        let signature = STANDARD.encode(mac(&self.keys.server, said.as_bytes()));
        let secret = Secret::ClientKey(Box::new((self.keys, client)));
        Ok((format!("v={signature}"), secret))
    }
}

/// The end that proves its identity.
pub struct Client<'a> {
    secret: &'a Secret,
    nonce: String,
}

/// The client's end after it has sent its proof.
pub struct Proven {
    signature: String,
}

impl<'a> Client<'a> {
    /// Starts an exchange with a new nonce.
    pub fn new(secret: &'a Secret) -> Self {
        Self {
            secret,
            nonce: STANDARD.encode(random::<NONCE_BYTES>()),
        }
    }

    /// The first message. PostgreSQL takes the user's name from the StartupMessage.
    pub fn first(&self) -> String {
        format!("n,,{}", self.bare())
    }

    fn bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Reads the answer to the first message. Returns the message with the proof.
    ///
    /// # Errors
    /// [`ScramError`]
    pub fn prove(self, answer: &[u8]) -> Result<(Proven, String), ScramError> {
        let answer = text(answer)?;
        let part = |name| attribute(answer, name).ok_or(ScramError::Malformed);
        let (nonce, salt, iterations) = (part('r')?, part('s')?, part('i')?);
        let salt = STANDARD.decode(salt).map_err(|_| ScramError::Malformed)?;
        let iterations = iterations.parse().ok().filter(is_bearable);
        let iterations = iterations.ok_or(ScramError::Malformed)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(ScramError::Malformed);
        }
        let (keys, client) = match self.secret {
            Secret::Password(password) => Keys::derive(password, &salt, iterations),
            Secret::ClientKey(known)
                if known.0.salt == salt && known.0.iterations == iterations =>
            {
                (**known).clone()
            }
            Secret::ClientKey(_) => return Err(ScramError::OtherKeys),
        };
        let header = STANDARD.encode("n,,");
        let without_proof = format!("c={header},r={nonce}");
        let said = format!("{},{answer},{without_proof}", self.bare());
        let proof = xor(client, mac(&keys.stored, said.as_bytes()));
        let signature = STANDARD.encode(mac(&keys.server, said.as_bytes()));
        let last = format!("{without_proof},p={}", STANDARD.encode(proof));
        Ok((Proven { signature }, last))
    }
}

impl Proven {
    /// Checks the server's signature, which proves that it has the user's keys.
    ///
    /// # Errors
    /// [`ScramError`]
    pub fn verify(self, last: &[u8]) -> Result<(), ScramError> {
        match attribute(text(last)?, 'v') {
            Some(signature) if signature == self.signature => Ok(()),
            _ => Err(ScramError::NotTheServer),
        }
    }
}

/// Random bytes for secrets.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the kernel has random bytes");
    bytes
}

fn is_bearable(iterations: &NonZeroU32) -> bool {
    iterations.get() <= ITERATIONS_MAX
}

fn text(bytes: &[u8]) -> Result<&str, ScramError> {
    let text = std::str::from_utf8(bytes).ok();
    text.filter(|text| text.len() <= MESSAGE_BYTES_MAX)
        .ok_or(ScramError::Malformed)
}

/// The value of the first attribute of this name.
fn attribute(message: &str, name: char) -> Option<&str> {
    let mut parts = message.split(',');
    parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

fn mac(key: &Key, data: &[u8]) -> Key {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut mac = [0; KEY_BYTES];
    mac.copy_from_slice(hmac::sign(&key, data).as_ref());
    mac
}

fn hash(data: &[u8]) -> Key {
    let mut hash = [0; KEY_BYTES];
    hash.copy_from_slice(digest::digest(&digest::SHA256, data).as_ref());
    hash
}

fn xor(mut one: Key, other: Key) -> Key {
    one.iter_mut()
        .zip(other)
        .for_each(|(one, other)| *one ^= other);
    one
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Runs both ends. Returns the secret that the client's proof revealed.
    fn exchange(keys: Keys, secret: &Secret) -> Result<Secret, ScramError> {
        let client = Client::new(secret);
        let (server, answer) = Server::begin(keys, client.first().as_bytes())?;
        let (proven, last) = client.prove(answer.as_bytes())?;
        let (verdict, shown) = server.finish(last.as_bytes())?;
        proven.verify(verdict.as_bytes())?;
        Ok(shown)
    }

    fn password(text: &str) -> Secret {
        Secret::Password(text.to_owned())
    }

    #[test]
    fn who_knows_the_password_is_known_and_shows_what_logs_in_elsewhere() {
        let keys = Keys::of_password("secret");
        let shown = exchange(keys.clone(), &password("secret")).unwrap();
        assert!(exchange(keys.clone(), &shown).is_ok());
        let wrong = exchange(keys.clone(), &password("Secret"));
        assert_eq!(wrong, Err(ScramError::Proof));
        let elsewhere = exchange(Keys::of_password("secret"), &shown);
        assert_eq!(elsewhere, Err(ScramError::OtherKeys));
        let nobody = Keys::of_nobody(b"a", &[7; 32]);
        assert_eq!(nobody.salt, Keys::of_nobody(b"a", &[7; 32]).salt);
        assert_eq!(exchange(nobody, &password("")), Err(ScramError::Proof));
    }

    /// RFC 7677, 3, with the nonce given there.
    #[test]
    fn the_example_of_the_standard_is_met() {
        let secret = password("pencil");
        let client = Client {
            secret: &secret,
            nonce: "rOprNGfwEbeRWgbNEkqO".to_owned(),
        };
        let answer = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        // The example names the user in the message; PostgreSQL does not.
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let (keys, key) = Keys::derive("pencil", &salt, ITERATIONS);
        let said = format!(
            "n=user,r=rOprNGfwEbeRWgbNEkqO,{answer},c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
        );
        let proof = STANDARD.encode(xor(key, mac(&keys.stored, said.as_bytes())));
        assert_eq!(proof, "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let verdict = STANDARD.encode(mac(&keys.server, said.as_bytes()));
        assert_eq!(verdict, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(client.prove(answer.as_bytes()).is_ok());
    }

    #[test]
    fn what_postgresql_stores_is_read() {
        let stored = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXku\
            LmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
        let keys = Keys::parse(stored).unwrap();
        assert!(exchange(keys, &password("pencil")).is_ok());
        for wrong in ["", "md5", "SCRAM-SHA-256$0:aa$a:b", "SCRAM-SHA-256$4096:$:"] {
            assert_eq!(Keys::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_was_not_offered_is_refused() {
        let begin = |first: &str| Server::begin(Keys::of_password("a"), first.as_bytes()).err();
        assert_eq!(
            begin("p=tls-unique,,n=,r=a"),
            Some(ScramError::ChannelBinding)
        );
        assert_eq!(begin("n,,n="), Some(ScramError::Malformed));
        assert_eq!(begin("x,,r=a"), Some(ScramError::Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(
            bytes in prop::collection::vec(prop::sample::select(b"nyp,=rscivab123+/=".to_vec()), 0..60),
        ) {
            let keys = Keys::of_nobody(b"a", &[1; 32]);
            let _ = Server::begin(keys.clone(), &bytes);
            let (server, _) = Server::begin(keys, b"n,,n=,r=a").unwrap();
            prop_assert!(server.finish(&bytes).is_err());
            let secret = Secret::Password(String::new());
            if let Ok((proven, _)) = Client::new(&secret).prove(&bytes) {
                prop_assert!(proven.verify(&bytes).is_err());
            }
        }
    }
}
