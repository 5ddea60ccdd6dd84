//! What other nodes tell this one, which keeps copies of their buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use millrace_cluster::{OTHER, Refused};
use millrace_dataplane::clock;
use millrace_dataplane::copies::{Mirror, clock_of, is_beat};

use super::{Kept, Standby, add, lock};
use crate::SKEW;
use crate::message::{Message, Offer, Unread, apart_by, next, refused, write};
use crate::security::Stream;

/// Nodes that tell at a time.
const STREAMS: u64 = 64;

impl Standby {
    /// Takes what a node tells, until its stream ends. The offer was checked but for its signature over the number that this end has drawn.
    pub(crate) fn follow(
        &self,
        offer: &Offer,
        challenge: &[u8; 32],
        stream: &mut Stream,
    ) -> Result<(), Refused> {
        if self.streams.fetch_add(1, Ordering::AcqRel) >= STREAMS {
            self.streams.fetch_sub(1, Ordering::AcqRel);
            return Err(refused(format!("{STREAMS} nodes tell already")));
        }
        let done = self.file(offer, challenge, stream);
        self.streams.fetch_sub(1, Ordering::AcqRel);
        if done.is_err() {
            add(&self.counts.refused, 1);
        }
        done
    }

    /// Whether a node may tell, in this life.
    fn may(&self, from: &str, life: u64) -> Result<(), Refused> {
        let table = self.standing.table();
        let node = table.named(from).and_then(|id| table.node(id));
        // One that has joined since this machine read the table has a later life.
        let known = node.is_some_and(|n| n.life < life || n.life == life && n.alive);
        match known && from != self.name {
            true => Ok(()),
            false => Err(refused(format!(
                "the table has no living node {from} in its life {life}"
            ))),
        }
    }

    fn file(
        &self,
        offer: &Offer,
        challenge: &[u8; 32],
        stream: &mut Stream,
    ) -> Result<(), Refused> {
        let (from, life) = (&offer.from, offer.bytes);
        self.may(from, life)?;
        let version = self.now();
        if offer.fingerprint != version.fingerprint {
            // It was replaced since the offer was looked at.
            return Err(refused(OTHER.to_owned()));
        }
        if offer.bucket as usize != version.content.workers {
            let (theirs, ours) = (offer.bucket, version.content.workers);
            return Err(refused(format!("it has {theirs} workers, this one {ours}")));
        }
        let mirror = Arc::new(Mutex::new(Mirror::new(&version.content)));
        let heard = Arc::new(AtomicU64::new(clock::now()));
        write(stream, &Message::Go)?;
        {
            let mut kept = lock(&self.kept);
            if kept.get(from).is_some_and(|kept| kept.life > life) {
                return Err(refused(format!("node {from} has a later life than {life}")));
            }
            kept.insert(
                from.clone(),
                Kept {
                    life,
                    generation: version.generation,
                    mirror: mirror.clone(),
                    heard: heard.clone(),
                    ended: None,
                    said: false,
                },
            );
        }
        let kept = (&*mirror, &*heard, version.generation);
        let filed = self.rows(kept, stream, (challenge, &offer.nonce));
        let mut kept = lock(&self.kept);
        let own = kept
            .get_mut(from)
            .filter(|kept| Arc::ptr_eq(&kept.mirror, &mirror));
        match (&filed, own) {
            // What is not to be believed is not gone on with.
            (Err(Ended::Wrong(_)), Some(_)) => {
                kept.remove(from);
            }
            (_, Some(own)) => own.ended = Some((Instant::now(), clock::now())),
            (_, None) => {}
        }
        match filed {
            Ok(()) | Err(Ended::Gone) => Ok(()),
            Err(Ended::Wrong(why)) => Err(why),
        }
    }

    fn rows(
        &self,
        (mirror, heard, generation): (&Mutex<Mirror>, &AtomicU64, u64),
        stream: &mut Stream,
        (challenge, nonce): (&[u8; 32], &[u8; 32]),
    ) -> Result<(), Ended> {
        let mut number = 0_u64;
        let mut clocks = Clocks::default();
        // By which the clocks of both ends are apart, with what a frame takes at least.
        let mut apart = i64::MAX;
        loop {
            let (tag, bytes) = match next(stream) {
                Ok(Message::Rows { tag, bytes }) => (tag, bytes),
                Ok(Message::End) => return Ok(()),
                Ok(_) => return Err(Ended::Wrong(refused("rows are expected".to_owned()))),
                Err(Unread::Gone(_)) => return Err(Ended::Gone),
                Err(Unread::NoFrame(why)) => return Err(Ended::Wrong(why)),
            };
            if self.generation.load(Ordering::Acquire) != generation {
                // The function was replaced here: the other end begins anew once it was there, too.
                return Err(Ended::Gone);
            }
            number += 1;
            let said = number.to_be_bytes();
            let parts: [&[u8]; 5] = [b"rows", challenge, nonce, &said, &bytes];
            if !self.secret.verifies(&parts, &tag) {
                let why = "the rows are not signed with the cluster's secret, or not the next ones";
                return Err(Ended::Wrong(refused(why.to_owned())));
            }
            let now = clock::now();
            let said = clock_of(&bytes).map_or(now, |told| {
                apart = apart.min(now.wrapping_sub(told) as i64);
                told.wrapping_add(apart as u64)
            });
            if let Some(told) = clock_of(&bytes) {
                clocks.see(now, told, is_beat(&bytes))?;
            }
            // Rows that waited at the other end are of before; a frame without any says that none wait.
            heard.fetch_max(said.min(now), Ordering::Relaxed);
            if !bytes.is_empty() {
                let filed = lock(mirror).apply(&bytes);
                let rows = filed.map_err(|e| Ended::Wrong(refused(e.to_string())))?;
                add(&self.counts.filed, rows);
            }
            write(stream, &Message::Go).map_err(|_| Ended::Gone)?;
            stream.renew();
        }
    }
}

/// Whether the clocks of both ends stay together: entries carry the time of the other one.
#[derive(Default)]
struct Clocks {
    /// the last frame that waited for nothing at the other end came late
    late: bool,
}

impl Clocks {
    /// What a frame `told` of the clock of the other end. Rows may have waited there; a `beat` has not, and one that comes late may have been held up
    /// on its way, but not the next one behind its acknowledgement.
    fn see(&mut self, now: u64, told: u64, beat: bool) -> Result<(), Ended> {
        let most = SKEW.as_nanos() as u64;
        let (early, late) = (told.saturating_sub(now), now.saturating_sub(told));
        let before = match beat {
            true => std::mem::replace(&mut self.late, late > most),
            false => false,
        };
        match early > most || before && late > most {
            true => Err(Ended::Wrong(apart_by(early.max(late)))),
            false => Ok(()),
        }
    }
}

/// Why a stream ended.
enum Ended {
    /// it has, or the node is gone
    Gone,
    /// it said what it may not
    Wrong(Refused),
}
