//! The receiver of buckets.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use millrace_cluster::vouch::{Answer, Ask};
use millrace_cluster::{HandOver, Machine, Refused};
use millrace_dataplane::clock;

use crate::figures;
use crate::hands::fresh;
use crate::message::{Message, Offer, Unread, apart_by, next, read, refused, write};
use crate::secret::digest;
use crate::security::Stream;
use crate::{Link, SKEW, Secret, Security, Standby};

/// Streams at a time; further ones are closed at once.
const STREAMS: usize = 8;
/// Beyond so many streams none is kept for a further bucket: others need their places.
const KEPT: usize = STREAMS / 2;
/// How late the end is noticed.
const LOOK: Duration = Duration::from_millis(10);

/// Whoever knows the table: which buckets may come.
pub trait Admits: Send + Sync {
    /// Whether this bucket may come from this node, under this version of the table.
    ///
    /// # Errors
    /// It may not.
    fn may(&self, bucket: u32, version: u64, from: &str) -> Result<(), Refused>;

    /// Puts the bucket in, where it may come now.
    ///
    /// # Errors
    /// It may not, there is no room, or these are no entries.
    fn take(&self, what: &HandOver, from: &str) -> Result<(), Refused>;

    /// A node of this cluster asks whether this one vouches for it; none where nobody has to.
    fn vouch(&self, _ask: &Ask) -> Option<Answer> {
        None
    }

    /// The bucket was put in, and the sender was told. `yours`: it knows that; without it nobody can say whether it does.
    fn came(&self, bucket: u32, yours: bool);
}

/// Takes buckets of other nodes, until it is dropped.
pub struct Listener {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What each stream needs.
struct Reception {
    name: String,
    secret: Secret,
    security: Security,
    machine: Arc<dyn Machine>,
    admits: Arc<dyn Admits>,
    link: Arc<Link>,
    /// this machine keeps copies
    standby: Option<Arc<Standby>>,
    streams: AtomicUsize,
}

impl Listener {
    /// At this address, which is that of the node of this name. A bucket has at most as many bytes as the machine has room for. Other nodes' buckets are copied to `standby`.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn begin(
        address: SocketAddr,
        (name, secret, security): (&str, &Secret, &Security),
        machine: Arc<dyn Machine>,
        admits: Arc<dyn Admits>,
        (link, standby): (&Arc<Link>, Option<Arc<Standby>>),
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let reception = Arc::new(Reception {
            name: name.to_owned(),
            secret: secret.clone(),
            security: security.clone(),
            machine,
            admits,
            link: link.clone(),
            standby,
            streams: AtomicUsize::new(0),
        });
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("peers".to_owned());
        let thread = thread.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => reception.admit(stream),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
                    // Out of descriptors: they come back.
                    Err(_) => std::thread::sleep(LOOK),
                }
            }
        })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked takes nothing any more.
            let _ = thread.join();
        }
    }
}

impl Reception {
    /// Sees to a stream on a thread of its own, which [`crate::WHOLE`] bounds.
    fn admit(self: &Arc<Self>, stream: TcpStream) {
        if self.streams.fetch_add(1, Ordering::AcqRel) >= STREAMS {
            self.streams.fetch_sub(1, Ordering::AcqRel);
            self.link.refused();
            return;
        }
        let own = self.clone();
        let thread = std::thread::Builder::new().name("peer".to_owned());
        let begun = thread.spawn(move || {
            let _counted = Counted(&own.streams);
            match own.security.accept(stream) {
                Ok(mut stream) => {
                    if let Err(why) = own.receive(&mut stream) {
                        own.link.refused();
                        // Whoever it is may have gone.
                        let _ = write(&mut stream, &Message::No(why.why));
                    }
                }
                Err(_) => own.link.refused(),
            }
        });
        if begun.is_err() {
            self.streams.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn receive(&self, stream: &mut Stream) -> Result<(), Refused> {
        let mut challenge = fresh()?;
        let fingerprint = self.machine.fingerprint();
        write(
            stream,
            &Message::Hello {
                fingerprint,
                nonce: challenge,
            },
        )?;
        let mut offer = match read(stream)? {
            Message::Offer(offer) => offer,
            Message::Follow(offer) => return self.follow(&offer, &challenge, stream),
            Message::Ask { text, tag } => return self.vouch(&challenge, (&text, &tag), stream),
            Message::Look { tag } => return self.look((&challenge, &tag), stream),
            _ => return Err(refused("an offer is expected".to_owned())),
        };
        // The first offer answers the number of this connection, each further one what was said last: none is taken twice.
        while let Some(said) = self.come(&offer, &challenge, stream)? {
            if self.streams.load(Ordering::Acquire) > KEPT {
                break;
            }
            challenge = said;
            stream.renew();
            offer = match next(stream) {
                Ok(Message::Offer(offer)) => offer,
                Ok(_) => return Err(refused("an offer is expected".to_owned())),
                Err(Unread::NoFrame(why)) => return Err(why),
                // That was the last one.
                Err(Unread::Gone(_)) => break,
            };
        }
        Ok(())
    }

    /// Takes a bucket that is offered; what was said of it, where the sender has heard that.
    fn come(
        &self,
        offer: &Offer,
        challenge: &[u8; 32],
        stream: &mut Stream,
    ) -> Result<Option<[u8; 32]>, Refused> {
        self.check((b"offer", offer), challenge, stream)?;
        self.fits(offer)?;
        self.admits.may(offer.bucket, offer.version, &offer.from)?;
        write(stream, &Message::Go)?;
        let mut entries = Vec::new();
        loop {
            match read(stream)? {
                Message::Piece(piece) if (entries.len() + piece.len()) as u64 <= offer.bytes => {
                    match entries.is_empty() {
                        true => entries = piece,
                        false => entries.extend(piece),
                    }
                }
                Message::End => break,
                _ => {
                    return Err(refused(
                        "pieces of entries are expected, as many as were offered".to_owned(),
                    ));
                }
            }
        }
        if entries.len() as u64 != offer.bytes || digest(&[&entries]) != offer.digest {
            return Err(refused(
                "the entries are not those that were offered".to_owned(),
            ));
        }
        let what = HandOver {
            bucket: offer.bucket,
            version: offer.version,
            fingerprint: offer.fingerprint,
            entries,
        };
        self.admits.take(&what, &offer.from)?;
        let tag = self.secret.tag(&[b"done", &offer.nonce, &offer.tag]);
        let told = write(stream, &Message::Done { tag });
        let yours = told.is_ok() && matches!(read(stream), Ok(Message::Go));
        self.admits.came(offer.bucket, yours);
        Ok(yours.then_some(tag))
    }

    /// Keeps a copy of what a node has. It has a stream for as long as both live, which is none of those that hand-overs have.
    fn follow(
        &self,
        offer: &Offer,
        challenge: &[u8; 32],
        stream: &mut Stream,
    ) -> Result<(), Refused> {
        let standby = self.standby.as_ref();
        let standby = standby.ok_or_else(|| refused("no copies are kept here".to_owned()))?;
        self.check((b"follow", offer), challenge, stream)?;
        self.streams.fetch_sub(1, Ordering::AcqRel);
        let done = standby.follow(offer, challenge, stream);
        self.streams.fetch_add(1, Ordering::AcqRel);
        done
    }

    /// Answers a node that asks for a promise.
    fn vouch(
        &self,
        challenge: &[u8; 32],
        (text, tag): (&[u8], &[u8; 32]),
        stream: &mut Stream,
    ) -> Result<(), Refused> {
        if !self.secret.verifies(&[b"ask", challenge, text], tag) {
            return Err(refused(
                "the question is not signed with the cluster's secret".to_owned(),
            ));
        }
        let ask: Ask = serde_json::from_slice(text)
            .map_err(|e| refused(format!("the question is none: {e}")))?;
        if !stream.is_of(&ask.from) {
            return Err(refused(format!("the certificate is not {}'s", ask.from)));
        }
        let answer = self.admits.vouch(&ask);
        let answer = answer.ok_or_else(|| refused("nobody is vouched for here".to_owned()))?;
        let text = serde_json::to_vec(&answer).map_err(|e| refused(e.to_string()))?;
        let tag = self.secret.tag(&[b"answer", tag, &text]);
        write(stream, &Message::Answer { text, tag })
    }

    /// Tells what this machine has counted.
    fn look(
        &self,
        (challenge, tag): (&[u8; 32], &[u8; 32]),
        stream: &mut Stream,
    ) -> Result<(), Refused> {
        // Buckets go before looks.
        if self.streams.load(Ordering::Acquire) > KEPT {
            return Err(refused("it is busy".to_owned()));
        }
        let figures = self.link.figures();
        let mut figures =
            figures.ok_or_else(|| refused("it has counted nothing yet".to_owned()))?;
        figures.stays = self.machine.stays();
        figures::answer(&self.secret, (&self.name, challenge, tag), &figures, stream)
    }

    /// Whether an offer is from a node of this cluster, for this node, now.
    fn check(
        &self,
        (what, offer): (&[u8], &Offer),
        challenge: &[u8; 32],
        stream: &Stream,
    ) -> Result<(), Refused> {
        let said = offer.said();
        if !self.secret.verifies(&[what, challenge, &said], &offer.tag) {
            return Err(refused(
                "the offer is not signed with the cluster's secret".to_owned(),
            ));
        }
        if !stream.is_of(&offer.from) {
            return Err(refused(format!("the certificate is not {}'s", offer.from)));
        }
        if offer.to != self.name {
            return Err(refused(format!("this is {}, not {}", self.name, offer.to)));
        }
        if offer.fingerprint != self.machine.fingerprint() {
            return Err(refused(
                "it is of another function, plan or secret".to_owned(),
            ));
        }
        let apart = clock::now().abs_diff(offer.time);
        if u128::from(apart) > SKEW.as_nanos() {
            return Err(apart_by(apart));
        }
        Ok(())
    }

    /// Whether a bucket that is offered is one, and not larger than what there is room for.
    fn fits(&self, offer: &Offer) -> Result<(), Refused> {
        if offer.bucket >= self.machine.buckets() {
            let buckets = self.machine.buckets();
            return Err(refused(format!(
                "there are {buckets} buckets, and no {}",
                offer.bucket
            )));
        }
        if offer.bytes > self.machine.room() {
            let (bytes, most) = (offer.bytes, self.machine.room());
            return Err(refused(format!(
                "{bytes} bytes of entries are more than there is room for ({most})"
            )));
        }
        Ok(())
    }
}

/// A stream that is counted as long as it is seen to.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
