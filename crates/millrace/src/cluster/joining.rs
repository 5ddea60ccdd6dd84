//! A machine of a cluster that is agreed on in etcd.
//!
//! It joins while its workers serve already: until the table lists it they drop what comes, with the reason. Where it cannot join, or loses its place,
//! the run ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millrace_cluster::etcd::Etcd;
use millrace_cluster::vouch::{Answer, Ask};
use millrace_cluster::{Config, HandOver, Machine, Membership, Peers, Refused, Standing};
use millrace_peer::Admits;

/// How long it may take to be listed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often is looked whether it still has its place.
const LOOK: Duration = Duration::from_millis(100);
/// How often is told that its buckets stay.
const TELL: Duration = Duration::from_secs(1);
/// How long leaving may take; the end of the lease does the same.
const LEAVE: Duration = Duration::from_secs(2);

/// What it joins with.
pub(super) struct With {
    /// its name, its address, its buckets
    pub config: Config,
    /// where it agrees with others
    pub store: Arc<Etcd>,
    /// its function
    pub machine: Arc<dyn Machine>,
    /// other machines
    pub peers: Arc<dyn Peers>,
    /// what its workers read
    pub standing: Arc<Standing>,
    /// words for a person
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
    /// ends the run
    pub end: Box<dyn Fn() + Send>,
}

/// A machine that joins, and then takes part until this is dropped.
pub struct Member {
    place: Arc<Place>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Its place in the cluster, once it has one.
#[derive(Default)]
struct Place(OnceLock<Membership>);

impl Member {
    pub(super) fn begin(with: With) -> Self {
        let (place, stop) = (Arc::<Place>::default(), Arc::<AtomicBool>::default());
        let (own, stopped) = (place.clone(), stop.clone());
        let joins = move || {
            let With {
                config,
                store,
                machine,
                peers,
                standing,
                say,
                end,
            } = with;
            let told = say.clone();
            let (etcd, running, name) = (store.clone(), machine.clone(), config.name.clone());
            let joined = Membership::start(
                millrace_cluster::With {
                    config,
                    store,
                    machine,
                    peers,
                    standing: Some(standing),
                    log: None,
                    say: Box::new(move |words| told(words)),
                },
                PATIENCE,
            );
            let member = match joined {
                Ok(member) => own.0.get_or_init(|| member),
                Err(error) => {
                    say(&error.to_string());
                    end();
                    return;
                }
            };
            let mut next = Instant::now();
            while !stopped.load(Ordering::Acquire) {
                // Those who wait for its buckets read why they do not come. Its key is another one once it has joined anew.
                if let Some(why) = running.stays().filter(|_| Instant::now() >= next) {
                    // Without an answer it is tried again.
                    let _ = etcd.stays(&name, &why);
                    next = Instant::now() + TELL;
                }
                if let Some(why) = member.failure() {
                    say(&why);
                    end();
                    return;
                }
                std::thread::park_timeout(LOOK);
            }
        };
        let thread = std::thread::Builder::new().name("cluster".to_owned());
        Self {
            place,
            stop,
            // Without a thread it never joins, and its workers say so.
            thread: thread.spawn(joins).ok(),
        }
    }

    /// What may come from others.
    pub(super) fn admits(&self) -> Arc<dyn Admits> {
        self.place.clone()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            match self.place.0.get() {
                Some(member) => {
                    member.leave(LEAVE);
                    // One that panicked does nothing any more.
                    let _ = thread.join();
                }
                // It still waits to be listed, and ends with the process.
                None => drop(thread),
            }
        }
    }
}

impl Place {
    fn member(&self) -> Result<&Membership, Refused> {
        self.0.get().ok_or_else(|| Refused {
            why: "the node has not joined".to_owned(),
        })
    }
}

impl Admits for Place {
    fn may(&self, bucket: u32, version: u64, _: &str) -> Result<(), Refused> {
        self.member()?.may(bucket, version)
    }

    fn take(&self, what: &HandOver, _: &str) -> Result<(), Refused> {
        self.member()?.take(what)
    }

    fn vouch(&self, ask: &Ask) -> Option<Answer> {
        Some(self.member().ok()?.vouch(ask))
    }

    /// The table says whose it is.
    fn came(&self, _: u32, _: bool) {}
}
