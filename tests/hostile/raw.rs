//! A server that writes what a script says, byte for byte.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// What the server does on a connection once it has read a head.
#[derive(Clone)]
pub(crate) enum Step {
    /// Sends this.
    Send(Vec<u8>),
    /// Sends this so many times.
    Repeat(Vec<u8>, usize),
    /// Sends the numbers from zero as single bytes in chunks, for ever.
    Drip,
    /// Resets the connection.
    Reset,
}

impl Step {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Send(text.into().into_bytes())
    }
}

/// A server on a loopback port that takes each connection for one request.
pub(crate) struct Raw {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Raw {
    pub(crate) async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Arc<[Step]> = steps.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&steps), Arc::clone(&counted)));
            }
        });
        Self { port, requests }
    }

    /// A server of one answer: a head without its last line end, and a body.
    pub(crate) async fn answer(head: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = body.len();
        let head = format!("{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        Self::start([Step::text(head), Step::Send(body)]).await
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// The peer may leave at any time: then there is nothing more to do.
async fn serve(mut stream: TcpStream, steps: Arc<[Step]>, requests: Arc<AtomicUsize>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    requests.fetch_add(1, Ordering::SeqCst);
    for step in &*steps {
        let done = match step {
            Step::Send(bytes) => stream.write_all(bytes).await,
            Step::Repeat(bytes, times) => {
                let mut done = Ok(());
                for _ in 0..*times {
                    done = done.and(stream.write_all(bytes).await);
                    if done.is_err() {
                        break;
                    }
                }
                done
            }
            Step::Drip => drip(&mut stream).await,
            Step::Reset => {
                // What was sent is delivered before the reset is.
                tokio::time::sleep(Duration::from_millis(500)).await;
                let _ = stream.set_zero_linger();
                return;
            }
        };
        if done.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn drip(stream: &mut TcpStream) -> std::io::Result<()> {
    for byte in (0..=u8::MAX).cycle() {
        stream
            .write_all(&[b"1\r\n", &[byte][..], b"\r\n"].concat())
            .await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
