//! Connections of TCP that go on for as long as a test does: a question and its answer, again and again.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::live::net::{Net, until};

const SERVER: &str = "198.51.100.1:7";
const WEB: &str = "198.51.100.1:80";
/// Bytes of a question and of its answer.
const BYTES: usize = 64;
const PAUSE: Duration = Duration::from_millis(50);

/// Answers questions, and requests of curl, in the namespace of the server, for as long as the process is there.
pub fn serve(net: &Net) {
    let bound = net.thread("s", || {
        [SERVER, WEB].map(|at| TcpListener::bind(at).unwrap())
    });
    let [echo, web] = bound.join().unwrap();
    std::thread::spawn(move || {
        for stream in echo.incoming().flatten() {
            std::thread::spawn(move || {
                let mut question = [0; BYTES];
                let mut stream = stream;
                while stream.read_exact(&mut question).is_ok()
                    && stream.write_all(&question).is_ok()
                {}
            });
        }
    });
    std::thread::spawn(move || {
        for mut stream in web.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nthere");
        }
    });
}

/// Whether curl gets an answer, over a connection of its own.
pub fn curl(net: &Net) -> bool {
    let args = ["-sf", "--max-time", "2", "http://198.51.100.1/"];
    let got = net.within("c", "curl", &args);
    got.status.success() && got.stdout == b"there"
}

/// One of them.
pub struct Talk {
    /// the client's port
    pub port: u16,
    answers: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    /// why it broke off, if it did
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Talk {
    /// So many, of the client's namespace.
    pub fn begin(net: &Net, count: usize) -> Vec<Self> {
        let connect = move || {
            let server: SocketAddr = SERVER.parse().unwrap();
            let one = |_| TcpStream::connect_timeout(&server, Duration::from_secs(20)).unwrap();
            (0..count).map(one).collect::<Vec<_>>()
        };
        let streams = net.thread("c", connect).join().unwrap();
        streams.into_iter().map(Self::of).collect()
    }

    fn of(stream: TcpStream) -> Self {
        let (answers, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counted, stopped) = (answers.clone(), stop.clone());
        let port = stream.local_addr().unwrap().port();
        let talks = move || talk(stream, &counted, &stopped).map_err(|e| e.to_string());
        Self {
            port,
            answers,
            stop,
            thread: Some(std::thread::spawn(talks)),
        }
    }

    /// Ends it, if it has not broken off.
    ///
    /// # Errors
    /// Why it has.
    pub fn end(mut self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn talk(mut stream: TcpStream, answers: &AtomicU64, stop: &AtomicBool) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PAUSE))?;
    stream.set_nodelay(true)?;
    let (mut answer, mut number) = ([0; BYTES], 0_u64);
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let question = [(number % 251) as u8; BYTES];
        stream.write_all(&question)?;
        let mut got = 0;
        while got < BYTES {
            match stream.read(&mut answer[got..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(more) => got += more,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                }
                Err(e) => return Err(e),
            }
        }
        if answer != question {
            return Err(ErrorKind::InvalidData.into());
        }
        answers.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Waits until each of them has had answers to questions of after now.
pub fn go_on(talks: &[Talk]) {
    let count = |t: &Talk| t.answers.load(Ordering::Relaxed);
    let before: Vec<u64> = talks.iter().map(count).collect();
    // The first may be to a question of before.
    until("all connections go on", || {
        talks
            .iter()
            .zip(&before)
            .all(|(t, before)| count(t) >= before + 2)
    });
}
