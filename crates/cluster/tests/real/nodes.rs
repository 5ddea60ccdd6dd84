//! Nodes in this process: a machine that counts packets, peers by name, a worker that accepts what it may.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use millrace_cluster::vouch::{Answer, Ask};
use millrace_cluster::{
    Config, Entry, HandOver, Machine, Membership, Node, Peers, Place, Refused, Store, Table, Times,
    Verdict, What, With, now,
};

pub const BUCKETS: u32 = 16;
pub const TTL: u64 = 2;

#[derive(Clone, Copy, Default)]
struct Bucket {
    here: bool,
    entries: u64,
}

#[derive(Default)]
pub struct Counting {
    buckets: Mutex<HashMap<u32, Bucket>>,
    pub full: AtomicBool,
}

impl Machine for Counting {
    fn buckets(&self) -> u32 {
        BUCKETS
    }

    fn fingerprint(&self) -> [u8; 32] {
        [7; 32]
    }

    fn give(&self, bucket: u32) -> Result<Vec<u8>, Refused> {
        let mut all = self.buckets.lock().expect("locked");
        let b = all.entry(bucket).or_default();
        b.here = false;
        Ok(std::mem::take(&mut b.entries).to_le_bytes().to_vec())
    }

    fn take(&self, bucket: u32, entries: &[u8]) -> Result<(), Refused> {
        if self.full.load(Ordering::Relaxed) {
            return Err(Refused {
                why: "no room".into(),
            });
        }
        let entries = u64::from_le_bytes(entries.try_into().expect("8 bytes"));
        let b = Bucket {
            here: false,
            entries,
        };
        self.buckets.lock().expect("locked").insert(bucket, b);
        Ok(())
    }

    fn settle(&self, bucket: u32, place: Place, back: Option<&[u8]>) {
        let mut all = self.buckets.lock().expect("locked");
        let b = all.entry(bucket).or_default();
        b.here = place == Place::Here;
        if let Some(back) = back {
            b.entries = u64::from_le_bytes(back.try_into().expect("8 bytes"));
        }
    }
}

impl Counting {
    /// What the state of each bucket that is here has seen.
    pub fn counted(&self) -> HashMap<u32, u64> {
        let all = self.buckets.lock().expect("locked");
        let here = all.iter().filter(|(_, b)| b.here);
        here.map(|(bucket, b)| (*bucket, b.entries)).collect()
    }
}

/// Who is reached by which name.
#[derive(Clone, Default)]
pub struct Street(Arc<Mutex<HashMap<String, Arc<Membership>>>>);

impl Street {
    fn find(&self, name: &str) -> Option<Arc<Membership>> {
        self.0.lock().expect("locked").get(name).cloned()
    }
}

impl Peers for Street {
    fn hand(&self, to: &Node, what: &HandOver) -> Result<(), Refused> {
        let why = "not there".to_owned();
        self.find(&to.name).ok_or(Refused { why })?.take(what)
    }

    fn vouch(&self, to: &Node, ask: &Ask) -> Option<Answer> {
        Some(self.find(&to.name)?.vouch(ask))
    }
}

pub struct Running {
    pub name: String,
    pub member: Arc<Membership>,
    pub machine: Arc<Counting>,
    street: Street,
    stop: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

pub type Log = Arc<Mutex<Vec<Entry>>>;

/// What nodes have said.
pub type Said = Arc<Mutex<Vec<String>>>;

pub fn start(name: &str, store: Arc<dyn Store>, street: &Street, log: &Log) -> Running {
    start_and_hear(name, store, street, log, &Said::default())
}

pub fn start_and_hear(
    name: &str,
    store: Arc<dyn Store>,
    street: &Street,
    log: &Log,
    said: &Said,
) -> Running {
    let said = said.clone();
    let machine = Arc::new(Counting::default());
    let with = With {
        standing: None,
        config: Config {
            name: name.to_owned(),
            peer: ([127, 0, 0, 1], 4800).into(),
            buckets: BUCKETS,
            times: Times::of_lease(TTL),
            batch: 4,
            copies: false,
        },
        store,
        machine: machine.clone(),
        peers: Arc::new(street.clone()),
        log: None,
        say: Box::new(move |words| {
            println!("{words}");
            said.lock().expect("locked").push(words.to_owned());
        }),
    };
    let member = Membership::start(with, Duration::from_secs(60)).expect("it joins");
    let member = Arc::new(member);
    let all = street.0.clone();
    all.lock()
        .expect("locked")
        .insert(name.to_owned(), member.clone());
    let stop = Arc::new(AtomicBool::new(false));
    let worker = {
        let (member, machine, stop) = (member.clone(), machine.clone(), stop.clone());
        let (log, name) = (log.clone(), name.to_owned());
        std::thread::spawn(move || work(&name, &member, &machine, &stop, &log))
    };
    Running {
        name: name.to_owned(),
        member,
        machine,
        street: street.clone(),
        stop,
        worker: Some(worker),
    }
}

/// A packet for each bucket now and then.
fn work(name: &str, member: &Membership, machine: &Counting, stop: &AtomicBool, log: &Log) {
    let standing = member.standing();
    while !stop.load(Ordering::Relaxed) {
        for bucket in 0..BUCKETS {
            let mut all = machine.buckets.lock().expect("locked");
            let t = now();
            if let Verdict::Accept { version } = standing.judge(bucket, None, t)
                && let Some(b) = all.get_mut(&bucket)
                && b.here
            {
                b.entries += 1;
                log.lock().expect("locked").push(Entry {
                    t,
                    node: name.to_owned(),
                    event: What::Accept,
                    bucket: Some(bucket),
                    version,
                });
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Running {
    /// Ends the node as a crash does: nothing is told to anybody.
    pub fn crash(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(worker) = self.worker.take() {
            worker.join().expect("it ends");
        }
        let mut all = self.street.0.lock().expect("locked");
        if all
            .get(&self.name)
            .is_some_and(|m| Arc::ptr_eq(m, &self.member))
        {
            all.remove(&self.name);
        }
    }

    /// How many buckets the table gives it.
    pub fn share(&self) -> usize {
        share(&self.member.standing().table(), &self.name)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

pub fn share(table: &Table, name: &str) -> usize {
    let id = table.named(name);
    let owned = table.owners.iter().filter(|o| id.is_some() && **o == id);
    owned.count()
}
