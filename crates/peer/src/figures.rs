//! Counts of a machine, for somebody who looks at all machines of a cluster.
//!
//! The run posts them some times a second, as it does for its metrics, and whoever looks gets the last ones: a look costs no worker anything. It comes
//! over the port between machines, so that nobody may look who could not hand a bucket over: by a certificate of the cluster's authority where
//! there is TLS, and by the cluster's secret over a number that the machine has drawn for this stream. The answer is signed over the question.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use millrace_cluster::{Node, Refused};
use millrace_dataplane::account::{Account, LostAccount};
use millrace_dataplane::classes::away::PeerCounts;
use serde::{Deserialize, Serialize};

use crate::hands::unexpected;
use crate::message::{FIGURES, Message, read, refused, write};
use crate::security::Stream;
use crate::{Secret, Security};

/// Reasons that are told by name; those of fewer packets are told together.
const REASONS: usize = 128;
/// The name of these.
const OTHERS: &str = "others";

/// What a machine has counted since its run began, and how it stands.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// seconds that the run has lasted
    pub seconds: f64,
    /// seconds since this was counted
    pub age: f64,
    /// of the table that it acts by
    pub version: u64,
    /// it knows of a newer table, and does not have it yet
    pub stale: bool,
    /// it may accept packets
    pub accepts: bool,
    /// seconds until it may not any more, unless its lease is prolonged; none without leases
    pub lease: Option<f64>,
    /// why it can neither give nor take buckets any more
    pub stays: Option<String>,
    /// packets read; the sum of the five fates behind it
    pub read: u64,
    /// packets that left at one or more ports
    pub forwarded: u64,
    /// packets dropped
    pub dropped: u64,
    /// packets given to the host's own stack
    pub passed: u64,
    /// packets that the program took
    pub consumed: u64,
    /// packets that the program aborted
    pub aborted: u64,
    /// packets sent beside those that were read
    pub created: u64,
    /// packets dropped or aborted, by reason
    pub reasons: BTreeMap<String, u64>,
    /// packets that ports lost
    pub lost: LostAccount,
    /// packets and buckets between machines
    pub peers: PeerCounts,
}

impl Figures {
    /// Of what a run has counted so far.
    fn of(account: &Account) -> Self {
        let mut reasons = account.reasons.clone();
        if reasons.len() > REASONS {
            let mut counts: Vec<u64> = reasons.values().copied().collect();
            counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
            let least = counts.get(REASONS - 1).copied().unwrap_or(0);
            let mut others = 0;
            reasons.retain(|_, count| {
                let told = *count > least;
                others += if told { 0 } else { *count };
                told
            });
            *reasons.entry(OTHERS.to_owned()).or_default() += others;
        }
        Self {
            seconds: account.seconds,
            read: account.read,
            forwarded: account.forwarded,
            dropped: account.dropped,
            passed: account.passed,
            consumed: account.consumed,
            aborted: account.aborted,
            created: account.created,
            reasons,
            lost: account.lost.unwrap_or_default(),
            peers: account.peers.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The counts of two machines together; how each stands is in neither.
    pub fn add(&mut self, other: &Self) {
        for (mine, its) in [
            (&mut self.read, other.read),
            (&mut self.forwarded, other.forwarded),
            (&mut self.dropped, other.dropped),
            (&mut self.passed, other.passed),
            (&mut self.consumed, other.consumed),
            (&mut self.aborted, other.aborted),
            (&mut self.created, other.created),
            (&mut self.lost.missed, other.lost.missed),
            (&mut self.lost.unfit, other.lost.unfit),
            (&mut self.lost.failed, other.lost.failed),
        ] {
            *mine = mine.saturating_add(its);
        }
        self.peers.add(&other.peers);
        for (reason, count) in &other.reasons {
            let sum = self.reasons.entry(reason.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// Whether each packet read has one fate, and each one dropped or aborted a reason.
    #[must_use]
    pub fn balances(&self) -> bool {
        let sum = |all: &[u64]| all.iter().fold(0, |a: u64, b| a.saturating_add(*b));
        let fates = [
            self.forwarded,
            self.dropped,
            self.passed,
            self.consumed,
            self.aborted,
        ];
        let reasons: Vec<u64> = self.reasons.values().copied().collect();
        self.read == sum(&fates) && sum(&reasons) == sum(&[self.dropped, self.aborted])
    }
}

/// Where a run posts what it has counted.
#[derive(Default)]
pub(crate) struct Board(Mutex<Option<(Instant, Figures)>>);

impl Board {
    pub fn post(&self, account: &Account) {
        let figures = (Instant::now(), Figures::of(account));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
    }

    /// The last ones, with their age; none before the first.
    pub fn last(&self) -> Option<Figures> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (when, figures) = last.as_ref()?;
        Some(Figures {
            age: when.elapsed().as_secs_f64(),
            ..figures.clone()
        })
    }
}

/// Looks at machines of a cluster.
#[derive(Clone)]
pub struct Viewer {
    secret: Secret,
    security: Security,
}

impl Viewer {
    /// With the secret of the cluster, and the certificate of one of its nodes or any other of its authority.
    #[must_use]
    pub fn new(secret: &Secret, security: &Security) -> Self {
        Self {
            secret: secret.clone(),
            security: security.clone(),
        }
    }

    /// What a machine has counted so far. It takes twice `within` at most, or a little more where the other end says something slowly.
    ///
    /// # Errors
    /// It is not there, does not answer in time, or answers something else.
    pub fn look(&self, to: &Node, within: Duration) -> Result<Figures, Refused> {
        let gone = |e: std::io::Error| refused(format!("it is not there: {e}"));
        let stream = TcpStream::connect_timeout(&to.peer, within).map_err(gone)?;
        let mut stream = self.security.connect(stream, &to.name)?;
        stream.hurry(within)?;
        let Message::Hello { nonce, .. } = read(&mut stream)? else {
            return Err(refused("it says something else than it should".to_owned()));
        };
        let tag = self.secret.tag(&[b"look", &nonce, to.name.as_bytes()]);
        write(&mut stream, &Message::Look { tag })?;
        match read(&mut stream)? {
            Message::Figures { text, tag: said }
                if self.secret.verifies(&[b"figures", &tag, &text], &said) =>
            {
                let figures = serde_json::from_slice(&text);
                figures.map_err(|e| refused(format!("its figures are none: {e}")))
            }
            other => Err(unexpected(other)),
        }
    }
}

/// Answers a look over a stream whose number is `challenge`.
pub(crate) fn answer(
    secret: &Secret,
    (name, challenge, tag): (&str, &[u8; 32], &[u8; 32]),
    figures: &Figures,
    stream: &mut Stream,
) -> Result<(), Refused> {
    if !secret.verifies(&[b"look", challenge, name.as_bytes()], tag) {
        return Err(refused(
            "the look is not signed with the cluster's secret, or is meant for another node"
                .to_owned(),
        ));
    }
    let text = serde_json::to_vec(figures).map_err(|e| refused(e.to_string()))?;
    if text.len() > FIGURES {
        return Err(refused("there is too much to tell".to_owned()));
    }
    let tag = secret.tag(&[b"figures", tag, &text]);
    write(stream, &Message::Figures { text, tag })
}
