//! An HTTP/2 client on the h2 crate. It makes all its requests at once, each in its own stream.

use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::{Reason, RecvStream};
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Taken, expected, look, method, range, upload, whose};
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
    futures(asks).await;
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

async fn futures(asks: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut asks: Vec<_> = asks.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        asks.retain_mut(|ask| ask.as_mut().poll(context).is_pending());
        match asks.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}

async fn exchange(
    requests: &Requests,
    index: usize,
    plan: &ClientPlan,
    ask: &Ask,
    sender: SendRequest<Bytes>,
) -> Result<Outcome, h2::Error> {
    let mut sender = sender.ready().await?;
    let target = format!("http://h{}", ask.what.target(ask.number));
    let mut request = Request::builder().method(method(ask)).uri(target);
    if let Some(range) = range(ask) {
        request = request.header("range", range);
    }
    let body = upload(ask);
    let Ok(request) = request.body(()) else {
        return Ok(Outcome::Broken("no request".to_owned()));
    };
    let (response, mut uploading) = sender.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        uploading.send_data(body.into(), true)?;
    }
    let response = response.await?;
    let status = response.status().as_u16();
    requests.headed(ask, status);
    let mut incoming = response.into_body();
    let mut expected = expected(ask, status);
    let (whose, mut taken) = (whose(index, ask), 0);
    while let Some(data) = next(plan.manner, taken, &mut incoming).await {
        let data = data?;
        taken += data.len() as u64;
        let _ = incoming.flow_control().release_capacity(data.len());
        if look(requests, &whose, expected.as_mut(), &data).is_none() {
            return Ok(Outcome::GivenUp);
        }
        if matches!(plan.manner, Manner::Resets(after) if taken >= after) {
            uploading.send_reset(Reason::CANCEL);
            return Ok(Outcome::GivenUp);
        }
    }
    let missing = expected.map_or(0, |expected| expected.missing());
    if missing > 0 {
        return Ok(Outcome::Broken(format!("{missing} bytes less")));
    }
    Ok(Outcome::Whole(status))
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
