//! The way to a collector: UDP or TCP. Nothing here waits long; what cannot be sent is counted by the caller.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// How long a connection may take, and a write.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long the answer to a last message may take that nobody was there for.
const ANSWER: Duration = Duration::from_millis(10);
/// Time between two attempts to connect: at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(16));

/// Why a collector's word cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Trouble {
    /// what was wrong
    pub what: String,
    /// what to do
    pub help: String,
}

/// Which transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
}

/// Where records go: `ipfix:HOST:PORT` by UDP, `ipfix+tcp:HOST:PORT` by TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    transport: Transport,
    host: String,
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.transport {
            Transport::Udp => "ipfix",
            Transport::Tcp => "ipfix+tcp",
        };
        write!(f, "{kind}:{}", self.host)
    }
}

impl std::str::FromStr for Collector {
    type Err = Trouble;

    fn from_str(word: &str) -> Result<Self, Trouble> {
        let wrong = |what: String| Trouble {
            what,
            help:
                "as in ipfix:192.0.2.1:4739, ipfix:[2001:db8::1]:4739 or ipfix+tcp:collector:4739"
                    .into(),
        };
        let (kind, host) = word
            .split_once(':')
            .ok_or_else(|| wrong(format!("{word} is no collector")))?;
        let transport = match kind {
            "ipfix" => Transport::Udp,
            "ipfix+tcp" => Transport::Tcp,
            other => {
                return Err(wrong(format!(
                    "{word}: no kind of export is called {other}"
                )));
            }
        };
        let parts = host.rsplit_once(':');
        let port = parts.and_then(|(name, port)| {
            let port = port.parse::<u16>().ok()?;
            (!name.is_empty() && port > 0).then_some(port)
        });
        port.ok_or_else(|| {
            wrong(format!(
                "{word}: a host and a port from 1 to 65535 are needed"
            ))
        })?;
        Ok(Self {
            transport,
            host: host.to_owned(),
        })
    }
}

impl Collector {
    /// Looks its name up and makes ready to send. A collector that is away is no error.
    ///
    /// # Errors
    /// The name is not known, or no socket can be had.
    pub fn open(&self) -> Result<Sender, Trouble> {
        let wrong = |what: String| Trouble {
            what: format!("{self}: {what}"),
            help: "name a collector that this machine can reach".into(),
        };
        let mut found = self
            .host
            .to_socket_addrs()
            .map_err(|e| wrong(e.to_string()))?;
        let to = found.next();
        let to = to.ok_or_else(|| wrong("the name has no address".into()))?;
        let way = match self.transport {
            Transport::Udp => {
                let from = match to {
                    SocketAddr::V4(_) => "0.0.0.0:0",
                    SocketAddr::V6(_) => "[::]:0",
                };
                let socket = UdpSocket::bind(from).and_then(|socket| {
                    socket.connect(to)?;
                    socket.set_nonblocking(true)?;
                    Ok(socket)
                });
                Way::Udp(socket.map_err(|e| wrong(e.to_string()))?)
            }
            Transport::Tcp => Way::Tcp {
                to,
                stream: None,
                next: Instant::now(),
                wait: AGAIN.0,
            },
        };
        Ok(Sender { way })
    }
}

enum Way {
    Udp(UdpSocket),
    Tcp {
        to: SocketAddr,
        stream: Option<TcpStream>,
        next: Instant,
        wait: Duration,
    },
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// it is on its way
    Yes,
    /// it is on its way, but nobody was there for the one before
    Refused,
    /// the collector is away
    No,
}

/// A way to a collector.
pub struct Sender {
    way: Way,
}

impl Sender {
    /// Whether templates have to be sent again now and then: by UDP a collector may have missed them (RFC 7011, section 8.4).
    #[must_use]
    pub fn forgets(&self) -> bool {
        matches!(self.way, Way::Udp(_))
    }

    /// Connects, where there is no connection and it is time to try; true: it is new, and knows no templates.
    pub fn connect(&mut self) -> bool {
        let Way::Tcp {
            to,
            stream,
            next,
            wait,
        } = &mut self.way
        else {
            return false;
        };
        if stream.is_some() || Instant::now() < *next {
            return false;
        }
        let made = TcpStream::connect_timeout(to, PATIENCE).and_then(|made| {
            made.set_write_timeout(Some(PATIENCE))?;
            made.set_nodelay(true)?;
            Ok(made)
        });
        match made {
            Ok(made) => {
                *stream = Some(made);
                *wait = AGAIN.0;
                true
            }
            Err(_) => {
                *next = Instant::now() + *wait;
                *wait = (*wait * 2).min(AGAIN.1);
                false
            }
        }
    }

    /// Whether nobody was there for the last message, as far as that is told within a moment.
    pub fn refused(&mut self) -> bool {
        let Way::Udp(socket) = &self.way else {
            return false;
        };
        std::thread::sleep(ANSWER);
        !matches!(socket.take_error(), Ok(None))
    }

    /// Sends a message.
    pub fn send(&mut self, message: &[u8]) -> Sent {
        match &mut self.way {
            Way::Udp(socket) => match socket.send(message) {
                Ok(_) => Sent::Yes,
                // The answer to an earlier message, which is told once; this one has not left.
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => match socket.send(message) {
                    Ok(_) => Sent::Refused,
                    Err(_) => Sent::No,
                },
                Err(_) => Sent::No,
            },
            Way::Tcp {
                stream, next, wait, ..
            } => {
                let sent = stream
                    .as_mut()
                    .is_some_and(|s| s.write_all(message).is_ok());
                if sent {
                    return Sent::Yes;
                }
                if stream.take().is_some() {
                    // Half a message may have left: the next one goes into a connection of its own.
                    *next = Instant::now() + *wait;
                }
                Sent::No
            }
        }
    }
}
