//! HTTPS to an authority and HTTP to a responder (OCSP), one connection for each request.
//!
//! What the authority sends is bounded: a response's head has at most 64 KiB, its body 1 MiB, and both must be there 30 seconds
//! after the request began. `Retry-After` (RFC 9110, 10.2.3) is put in seconds, a day at most: `instant-acme` adds whatever
//! number it finds to the date, which panics where the sum is no date.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, HttpClient};
use parking_lot::Mutex;
use rustls::ClientConfig;
use shortline_tls::{TlsError, Trust};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const TIME_MAX: Duration = Duration::from_secs(30);
/// For an answer to whether a name is allowed: a handshake waits for it.
const ASK_TIME_MAX: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 64 << 10;
const BODY_BYTES_MAX: usize = 1 << 20;
/// A responder's answer has some 2 KiB.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
const RETRY_S_MAX: u64 = 24 * 3600;

/// Makes the requests of one account.
#[derive(Clone, Debug)]
pub struct Client {
    tls: Arc<ClientConfig>,
    told_s: Arc<Mutex<Option<u64>>>,
}

/// There was no usable answer.
#[derive(Debug)]
pub struct ClientError {
    /// The server that was asked.
    host: String,
    problem: String,
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.host, self.problem)
    }
}

impl std::error::Error for ClientError {}

type Answer = Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>>;

impl Client {
    /// A client that trusts these authorities.
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn new(trust: &Trust) -> Result<Self, TlsError> {
        Ok(Self {
            tls: Arc::new(shortline_tls::client_config(trust, &[b"http/1.1"])?),
            told_s: Arc::default(),
        })
    }

    /// How it speaks TLS.
    pub fn tls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.tls)
    }

    /// How long the authority wants us to wait, if its last refusal said so.
    pub fn told_s(&self) -> Option<u64> {
        *self.told_s.lock()
    }

    async fn ask(
        self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, ClientError> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let failed = |problem: String| ClientError {
            host: host.clone(),
            problem,
        };
        let answer = tokio::time::timeout(TIME_MAX, exchange(&self.tls, request));
        let mut answer = answer
            .await
            .map_err(|_| failed(format!("no answer in {} s", TIME_MAX.as_secs())))?
            .map_err(|error| failed(error.to_string()))?;
        let told_s = retry_after_s(answer.headers());
        if let Some(told_s) = told_s {
            answer.headers_mut().insert(RETRY_AFTER, told_s.into());
        } else {
            answer.headers_mut().remove(RETRY_AFTER);
        }
        let status = answer.status();
        let is_refusal = !status.is_success();
        *self.told_s.lock() = told_s.filter(|_| is_refusal);
        let is_problem = answer.headers().get(CONTENT_TYPE).is_some_and(is_problem);
        match is_refusal && !is_problem {
            true => Err(failed(format!(
                "answers {status}, and not as an ACME server does"
            ))),
            false => Ok(answer),
        }
    }
}

impl HttpClient for Client {
    fn request(&self, request: Request<BodyWrapper<Bytes>>) -> Answer {
        let asking = self.clone().ask(request);
        Box::pin(async move {
            match asking.await {
                Ok(answer) => Ok(answer.into()),
                Err(error) => Err(instant_acme::Error::Other(error.into())),
            }
        })
    }
}

type Problem = Box<dyn std::error::Error + Send + Sync>;

/// One request by HTTPS and its whole response.
async fn exchange(
    tls: &Arc<ClientConfig>,
    request: Request<BodyWrapper<Bytes>>,
) -> Result<Response<Full<Bytes>>, Problem> {
    if request.uri().scheme() != Some(&Scheme::HTTPS) {
        // RFC 8555, 6.1.
        return Err("names a URL that is not https".into());
    }
    send(Some(tls), request).await
}

/// What an HTTP URL answers to `body`, if it is successful and not too large.
///
/// # Errors
/// There is no such answer in time.
pub async fn post(url: &str, kind: &'static str, body: Vec<u8>) -> Result<Bytes, Problem> {
    let request = Request::post(url)
        .header(USER_AGENT, "shortline")
        .header(CONTENT_TYPE, kind)
        .body(Full::<Bytes>::from(body))?;
    let answer = tokio::time::timeout(TIME_MAX, send(None, request)).await;
    let answer = answer.map_err(|_| format!("no answer in {} s", TIME_MAX.as_secs()))??;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    match status {
        StatusCode::OK if body.len() <= ANSWER_BYTES_MAX => Ok(body),
        StatusCode::OK => Err("the answer is larger than 64KiB".into()),
        status => Err(format!("answers {status}").into()),
    }
}

/// The status that a URL answers with, by HTTP or HTTPS.
///
/// # Errors
/// There is no answer in time, or none that is HTTP's.
pub async fn status(tls: &Arc<ClientConfig>, url: &str) -> Result<StatusCode, Problem> {
    let request = Request::get(url).header(USER_AGENT, "shortline");
    let request = request.body(Full::<Bytes>::default())?;
    let answer = tokio::time::timeout(ASK_TIME_MAX, send(Some(tls), request)).await;
    let answer = answer.map_err(|_| format!("no answer in {} s", ASK_TIME_MAX.as_secs()))?;
    Ok(answer?.status())
}

/// By HTTPS only with `tls`.
async fn send<B>(
    tls: Option<&Arc<ClientConfig>>,
    mut request: Request<B>,
) -> Result<Response<Full<Bytes>>, Problem>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Problem>,
{
    let uri = std::mem::take(request.uri_mut());
    let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
    let authority = uri.authority().ok_or("names a URL without a host")?;
    let field = HeaderValue::try_from(authority.as_str())?;
    request.headers_mut().insert(HOST, field);
    let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    *request.uri_mut() = Uri::try_from(target)?;
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16();
    let socket =
        TcpStream::connect((host, port.unwrap_or(if is_secure { 443 } else { 80 }))).await?;
    match (is_secure, tls) {
        (true, Some(tls)) => over(shortline_tls::connect(tls, host, socket).await?, request).await,
        (true, None) => Err("names a URL that is not http".into()),
        (false, _) => over(socket, request).await,
    }
}

/// One request over a connection of its own.
async fn over<S, B>(stream: S, request: Request<B>) -> Result<Response<Full<Bytes>>, Problem>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Problem>,
{
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await?;
    // It ends with this request, however that ends.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await?;
    Ok(Response::from_parts(head, Full::new(body.to_bytes())))
}

/// Whether a response says what is wrong (RFC 9457, 3).
fn is_problem(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"application/problem+json")
}

/// How long a response wants us to wait, in seconds, a day at most.
pub fn retry_after_s(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let at = httpdate::parse_http_date(text).ok()?;
            let left = at.duration_since(shortline_base::clock::date());
            left.unwrap_or_default().as_secs()
        }
    };
    Some(seconds.min(RETRY_S_MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_authority_that_says_nothing_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let path = folder.path().join("a.crt");
        std::fs::write(&path, made.cert.pem()).unwrap();
        let client = Client::new(&Trust::File(path)).unwrap();
        let request =
            Request::get(format!("https://127.0.0.1:{port}/")).body(BodyWrapper::default());
        let begun = tokio::time::Instant::now();
        let error = client.ask(request.unwrap()).await.unwrap_err().to_string();
        assert_eq!(error, "127.0.0.1: no answer in 30 s");
        assert_eq!(begun.elapsed().as_secs(), 30);
        drop(listener);
    }

    #[test]
    fn no_time_to_wait_is_longer_than_a_day() {
        let read = |text: &str| {
            let field = (RETRY_AFTER, HeaderValue::try_from(text).unwrap());
            retry_after_s(&HeaderMap::from_iter([field]))
        };
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("18446744073709551615"), Some(RETRY_S_MAX));
        assert_eq!(read("Fri, 31 Dec 9999 23:59:59 GMT"), Some(RETRY_S_MAX));
        assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for text in ["", "-1", "soon", "99999999999999999999"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
