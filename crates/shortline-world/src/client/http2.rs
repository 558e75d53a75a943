//! An HTTP/2 client on the h2 crate. It makes all its requests at once, each in its own stream.

use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::{Reason, RecvStream};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::body::{Body, HeadFields};
use super::{Taken, all_at_once, fields, method, sound, upload, whose};
use crate::network::End;
use crate::requests::Requests;
use crate::scenario::{Ask, ClientPlan, Manner};
use crate::verdict::Outcome;

/// Bytes that are not HTTP/2.
const BABBLE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff";

/// Makes all planned requests.
pub async fn ask(requests: &Requests, index: usize, plan: &ClientPlan, end: End) {
    let mut stream = Taken::new(&requests.world, end, of_connection(plan.manner));
    if plan.manner == Manner::Babbles {
        let _ = stream.write_all(BABBLE).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        return;
    }
    let shaken = client::Builder::new()
        .initial_window_size(plan.stream_window_bytes)
        .initial_connection_window_size(1 << 20)
        .handshake::<_, Bytes>(stream)
        .await;
    let Ok((sender, connection)) = shaken else {
        return;
    };
    let driver = tokio::spawn(async move {
        // Each stream gets the error.
        let _ = connection.await;
    });
    let asks = plan.asks.iter().map(|ask| async {
        requests.world.sleep(ask.think_ns).await;
        requests.asks(index, ask);
        let outcome = exchange(requests, index, plan, ask, sender.clone()).await;
        let outcome = outcome.unwrap_or_else(|error| {
            let gave_up = error
                .get_io()
                .is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionAborted);
            match gave_up {
                true => Outcome::GivenUp,
                false => Outcome::Broken(error.to_string()),
            }
        });
        requests.ended(index, ask, outcome);
    });
    all_at_once(asks).await;
    drop(sender);
    driver.abort();
}

/// The part of a manner that applies to the connection. A reset or a stall applies to a stream.
fn of_connection(manner: Manner) -> Manner {
    match manner {
        Manner::Resets(_) | Manner::Stalls(_) => Manner::Honest,
        manner => manner,
    }
}

async fn exchange(
    requests: &Requests,
    index: usize,
    plan: &ClientPlan,
    ask: &Ask,
    sender: SendRequest<Bytes>,
) -> Result<Outcome, h2::Error> {
    let mut sender = sender.ready().await?;
    let version = requests.version();
    let target = format!("http://{}{}", ask.host.name(), ask.what.target(ask.number));
    let mut request = Request::builder().method(method(ask)).uri(target);
    for (name, value) in fields(index, ask) {
        request = request.header(name, value);
    }
    let uploaded = upload(ask);
    let Ok(request) = request.body(()) else {
        return Ok(Outcome::Broken("no request".to_owned()));
    };
    let (response, mut uploading) = sender.send_request(request, uploaded.is_empty())?;
    if !uploaded.is_empty() {
        uploading.send_data(uploaded.into(), true)?;
    }
    let response = response.await?;
    let told = HeadFields::of(response.status(), response.headers());
    let status = told.status;
    requests.headed(ask, status);
    let mut incoming = response.into_body();
    let (whose, mut taken) = (whose(index, ask), 0);
    let body = Body::of(ask, index as u64, version, &told);
    let Some(mut body) = sound(requests, &whose, body) else {
        return Ok(Outcome::GivenUp);
    };
    while let Some(data) = next(plan.manner, taken, &mut incoming).await {
        let data = data?;
        taken += data.len() as u64;
        let _ = incoming.flow_control().release_capacity(data.len());
        if sound(requests, &whose, body.take(&data)).is_none() {
            return Ok(Outcome::GivenUp);
        }
        if matches!(plan.manner, Manner::Resets(after) if taken >= after) {
            uploading.send_reset(Reason::CANCEL);
            return Ok(Outcome::GivenUp);
        }
    }
    Ok(match sound(requests, &whose, body.finish()) {
        None => Outcome::GivenUp,
        Some(0) => Outcome::Whole(status),
        Some(missing) => Outcome::Broken(format!("{missing} bytes less")),
    })
}

/// The next bytes. A client that stalls waits forever.
async fn next(
    manner: Manner,
    taken: u64,
    incoming: &mut RecvStream,
) -> Option<Result<Bytes, h2::Error>> {
    if matches!(manner, Manner::Stalls(after) if taken >= after) {
        return std::future::pending().await;
    }
    incoming.data().await
}
