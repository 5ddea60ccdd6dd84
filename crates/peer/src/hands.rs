//! The sender of buckets.

use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use millrace_cluster::vouch::{Answer, Ask};
use millrace_cluster::{HandOver, Node, Peers, Refused};
use millrace_dataplane::clock;
use ring::rand::{SecureRandom, SystemRandom};

use crate::message::{Message, Offer, PIECE, Unread, next, read, refused, write, write_piece};
use crate::secret::digest;
use crate::security::Stream;
use crate::{Link, STEP, Secret, Security};

/// How long a stream is kept for the next bucket. The receiver keeps it for [`STEP`].
const KEPT: Duration = Duration::from_secs(1);

/// Sends buckets to other nodes.
#[derive(Clone)]
pub struct Hands {
    name: String,
    secret: Secret,
    security: Security,
    link: Arc<Link>,
    /// the stream of the last hand-over, for the next one to the same node: what it costs to begin one is paid once a batch
    kept: Arc<Mutex<Option<Kept>>>,
}

/// A stream over which a bucket was handed over.
struct Kept {
    to: Node,
    stream: Stream,
    /// the receiver's
    fingerprint: [u8; 32],
    /// what the next offer answers
    challenge: [u8; 32],
    since: Instant,
}

/// Why a hand-over was not done.
enum Unsent {
    /// the stream ended before the offer was answered: nothing was done
    Ended(Refused),
    /// anything else
    Refused(Refused),
}

impl From<Refused> for Unsent {
    fn from(why: Refused) -> Self {
        Self::Refused(why)
    }
}

/// 32 bytes that nobody foresees.
pub(crate) fn fresh() -> Result<[u8; 32], Refused> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| refused("the system gives no random numbers".to_owned()))?;
    Ok(bytes)
}

impl Hands {
    /// Of the node of this name.
    #[must_use]
    pub fn new(name: &str, secret: &Secret, security: &Security, link: &Arc<Link>) -> Self {
        Self {
            name: name.to_owned(),
            secret: secret.clone(),
            security: security.clone(),
            link: link.clone(),
            kept: Arc::default(),
        }
    }

    /// A stream to a node, with what its greeting says: its fingerprint, and the number that it has drawn.
    pub(crate) fn reached(
        &self,
        to: &Node,
        within: Duration,
    ) -> Result<(Stream, [u8; 32], [u8; 32]), Refused> {
        let gone = |e: std::io::Error| refused(format!("it is not there: {e}"));
        let stream = TcpStream::connect_timeout(&to.peer, within).map_err(gone)?;
        let mut stream = self.security.connect(stream, &to.name)?;
        match read(&mut stream)? {
            Message::Hello { fingerprint, nonce } => Ok((stream, fingerprint, nonce)),
            other => Err(unexpected(other)),
        }
    }

    fn send(&self, to: &Node, what: &HandOver) -> Result<(), Refused> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lock().take();
        let kept = kept.filter(|k| k.to == *to && k.since.elapsed() < KEPT);
        if let Some(mut kept) = kept {
            kept.stream.renew();
            match self.offer(&mut kept, what) {
                Ok(()) => {
                    *lock() = Some(kept);
                    return Ok(());
                }
                Err(Unsent::Refused(why)) => return Err(why),
                // The receiver has kept it no longer.
                Err(Unsent::Ended(_)) => {}
            }
        }
        let (stream, fingerprint, challenge) = self.reached(to, STEP)?;
        let mut fresh = Kept {
            to: to.clone(),
            stream,
            fingerprint,
            challenge,
            since: Instant::now(),
        };
        match self.offer(&mut fresh, what) {
            Ok(()) => {
                *lock() = Some(fresh);
                Ok(())
            }
            Err(Unsent::Ended(why) | Unsent::Refused(why)) => Err(why),
        }
    }

    /// Hands a bucket over, over a stream that is used for nothing else meanwhile.
    fn offer(&self, over: &mut Kept, what: &HandOver) -> Result<(), Unsent> {
        let Kept {
            to,
            stream,
            fingerprint,
            challenge,
            since,
        } = over;
        if *fingerprint != what.fingerprint {
            return Err(refused(
                "it runs another function, another version of it, or with another plan, number of cores or secret"
                    .to_owned(),
            )
            .into());
        }
        let mut offer = Offer {
            from: self.name.clone(),
            to: to.name.clone(),
            fingerprint: what.fingerprint,
            bucket: what.bucket,
            version: what.version,
            time: clock::now(),
            bytes: what.entries.len() as u64,
            digest: digest(&[&what.entries]),
            nonce: fresh()?,
            tag: [0; 32],
        };
        offer.tag = self.secret.tag(&[b"offer", challenge, &offer.said()]);
        let tag = offer.tag;
        let nonce = offer.nonce;
        write(stream, &Message::Offer(Box::new(offer))).map_err(Unsent::Ended)?;
        match next(stream) {
            Ok(Message::Go) => {}
            Ok(other) => return Err(unexpected(other).into()),
            Err(Unread::Gone(why)) => return Err(Unsent::Ended(why)),
            Err(Unread::NoFrame(why)) => return Err(why.into()),
        }
        for piece in what.entries.chunks(PIECE) {
            write_piece(stream, piece)?;
        }
        write(stream, &Message::End)?;
        match read(stream)? {
            Message::Done { tag: said }
                if self.secret.verifies(&[b"done", &nonce, &tag], &said) =>
            {
                *challenge = said;
            }
            other => return Err(unexpected(other).into()),
        }
        // It is the receiver's whether or not this arrives; a service that agrees on the table says so, too.
        let _ = write(stream, &Message::Go);
        *since = Instant::now();
        Ok(())
    }

    fn ask(&self, to: &Node, ask: &Ask) -> Result<Answer, Refused> {
        let within = Duration::from_nanos(ask.ttl / 4).min(STEP);
        let (mut stream, _, nonce) = self.reached(to, within)?;
        let text = serde_json::to_vec(ask).map_err(|e| refused(e.to_string()))?;
        let tag = self.secret.tag(&[b"ask", &nonce, &text]);
        write(&mut stream, &Message::Ask { text, tag })?;
        match read(&mut stream)? {
            Message::Answer { text, tag: said }
                if self.secret.verifies(&[b"answer", &tag, &text], &said) =>
            {
                serde_json::from_slice(&text)
                    .map_err(|e| refused(format!("its answer is none: {e}")))
            }
            other => Err(unexpected(other)),
        }
    }
}

pub(crate) fn unexpected(message: Message) -> Refused {
    match message {
        Message::No(why) => refused(format!("it refuses: {why}")),
        _ => refused("it says something else than it should".to_owned()),
    }
}

impl Peers for Hands {
    fn hand(&self, to: &Node, what: &HandOver) -> Result<(), Refused> {
        let sent = self.send(to, what);
        sent.map_err(|e| {
            self.link.refused();
            refused(format!("{} at {}: {}", to.name, to.peer, e.why))
        })
    }

    fn vouch(&self, to: &Node, ask: &Ask) -> Option<Answer> {
        self.ask(to, ask).ok()
    }
}
