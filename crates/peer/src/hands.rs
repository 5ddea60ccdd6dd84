//! The sender of a bucket.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use millrace_cluster::vouch::{Answer, Ask};
use millrace_cluster::{HandOver, Node, Peers, Refused};
use millrace_dataplane::clock;
use ring::rand::{SecureRandom, SystemRandom};

use crate::message::{Message, Offer, PIECE, read, refused, write};
use crate::secret::digest;
use crate::security::Stream;
use crate::{Link, STEP, Secret, Security};

/// Sends buckets to other nodes.
#[derive(Clone)]
pub struct Hands {
    name: String,
    secret: Secret,
    security: Security,
    link: Arc<Link>,
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
        let (mut stream, fingerprint, challenge) = self.reached(to, STEP)?;
        if fingerprint != what.fingerprint {
            return Err(refused(
                "it runs another function, another version of it, or with another plan, number of cores or secret"
                    .to_owned(),
            ));
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
        offer.tag = self.secret.tag(&[b"offer", &challenge, &offer.said()]);
        let tag = offer.tag;
        let nonce = offer.nonce;
        write(&mut stream, &Message::Offer(Box::new(offer)))?;
        match read(&mut stream)? {
            Message::Go => {}
            other => return Err(unexpected(other)),
        }
        for piece in what.entries.chunks(PIECE) {
            write(&mut stream, &Message::Piece(piece.to_vec()))?;
        }
        write(&mut stream, &Message::End)?;
        match read(&mut stream)? {
            Message::Done { tag: said }
                if self.secret.verifies(&[b"done", &nonce, &tag], &said) => {}
            other => return Err(unexpected(other)),
        }
        // It is the receiver's whether or not this arrives; a service that agrees on the table says so, too.
        let _ = write(&mut stream, &Message::Go);
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
