//! A cluster whose table an operator writes into a file, the same on all nodes: for tests, and where no service agrees on it.
//!
//! ```toml
//! version = 1
//! secret = "64 hexadecimal digits"
//!
//! [[node]]
//! name = "a"
//! peer = "10.9.0.1:7100"
//! buckets = ["0-127"]
//!
//! [[node]]
//! name = "b"
//! peer = "10.9.0.2:7100"
//! buckets = ["128-255"]
//! ```
//!
//! Each node looks at the file ten times a second. Where its version is raised, a node that has a bucket hands it to the one that shall have it, and
//! tries again where that refuses. Others send packets to the old owner, which sends them on, until [`LATER`] has passed. A node that is said not
//! to be `alive` is asked for nothing: its buckets begin empty where they go.
//!
//! Where the file differs between nodes for long, a bucket stays with the one that has it. Nothing here notices a node that is dead: an operator
//! does, and says so in the file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millrace_cluster::{HandOver, Machine, Node, NodeId, Peers, Place, Refused, Standing, Table};
use serde::Deserialize;

use crate::message::refused;
use crate::{Admits, Secret};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long nodes that neither lose nor get a bucket send its packets to its old owner.
const LATER: Duration = Duration::from_secs(2);
/// How often a bucket is offered, under one version.
const TRIES: u32 = 30;
/// Buckets that are offered before the file is looked at again.
const PASS: usize = 8;
/// Buckets that there may be.
const BUCKETS: u32 = 1 << 16;

/// A table in a file.
#[derive(Clone, Debug)]
pub struct Plan {
    /// its version
    pub version: u64,
    /// the secret of the cluster
    pub secret: Secret,
    nodes: Vec<Node>,
    /// by node: first and last bucket of each range
    ranges: Vec<Vec<(u32, u32)>>,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", file.display())]
pub struct FixedError {
    /// the file
    pub file: PathBuf,
    /// what is wrong
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u64,
    secret: String,
    node: Vec<WrittenNode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNode {
    name: String,
    peer: SocketAddr,
    #[serde(default)]
    buckets: Vec<String>,
    #[serde(default = "yes")]
    alive: bool,
}

fn yes() -> bool {
    true
}

impl Plan {
    /// All nodes, by number.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no table.
    pub fn read(file: &Path) -> Result<Self, FixedError> {
        let wrong = |what: String| FixedError {
            file: file.to_owned(),
            what,
        };
        let text = std::fs::read_to_string(file).map_err(|e| wrong(e.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written: Written = toml::from_str(text).map_err(|e| e.to_string())?;
        let secret = Secret::parse(&written.secret);
        let secret =
            secret.ok_or("`secret` is 64 hexadecimal digits, as of `openssl rand -hex 32`")?;
        if written.node.is_empty() || written.node.len() > usize::from(u16::MAX) {
            return Err("there are no nodes".to_owned());
        }
        let (mut nodes, mut ranges) = (Vec::<Node>::new(), Vec::new());
        for of in written.node {
            let twice = |n: &Node| n.name == of.name || n.peer == of.peer;
            if let Some(other) = nodes.iter().find(|n| twice(n)) {
                return Err(format!(
                    "node {} has the name or the address of node {}",
                    of.name, other.name
                ));
            }
            let each = of.buckets.iter().map(|text| {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let range = first.trim().parse().ok().zip(last.trim().parse().ok());
                let range = range.filter(|(first, last)| first <= last && *last < BUCKETS);
                range.ok_or_else(|| {
                    format!(
                        "node {}: `{text}` is no range of buckets, as in \"0-127\"",
                        of.name
                    )
                })
            });
            ranges.push(each.collect::<Result<_, _>>()?);
            nodes.push(Node {
                name: of.name,
                peer: of.peer,
                life: 0,
                lease: 0,
                alive: of.alive,
                drained: false,
                copies: false,
            });
        }
        Ok(Self {
            version: written.version,
            secret,
            nodes,
            ranges,
        })
    }

    /// Its node of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<(NodeId, &Node)> {
        let at = self.nodes.iter().position(|n| n.name == name)?;
        Some((NodeId(at as u16), self.nodes.get(at)?))
    }

    /// The table of so many buckets.
    ///
    /// # Errors
    /// A bucket is of two nodes, or beyond those that there are.
    pub fn table(&self, buckets: u32) -> Result<Table, String> {
        let mut table = Table::empty(buckets);
        table.version = self.version;
        table.nodes.clone_from(&self.nodes);
        for (node, ranges) in (0..).map(NodeId).zip(&self.ranges) {
            for bucket in ranges.iter().flat_map(|(first, last)| *first..=*last) {
                let owner = table.owners.get_mut(bucket as usize);
                let owner = owner.ok_or_else(|| {
                    format!("bucket {bucket}: the plan of this function has {buckets}, from 0")
                })?;
                if owner.replace(node).is_some() {
                    return Err(format!("bucket {bucket} is of two nodes"));
                }
            }
        }
        table.wanted.clone_from(&table.owners);
        table.checked().map_err(|e| e.to_string())
    }
}

/// What this node knows.
struct Known {
    /// what it goes by: owners are those that have the state
    table: Table,
    /// when the file's version was seen
    since: Instant,
    tries: BTreeMap<u32, u32>,
    said: Option<String>,
}

struct Inside {
    me: NodeId,
    standing: Arc<Standing>,
    machine: Arc<dyn Machine>,
    known: Mutex<Known>,
    stop: AtomicBool,
}

/// A node of a cluster whose table stands in a file, until it is dropped.
pub struct Fixed {
    inside: Arc<Inside>,
    thread: Option<JoinHandle<()>>,
}

impl Fixed {
    /// A node, whose machine has its buckets already, as `table` says.
    #[must_use]
    pub fn new(standing: &Arc<Standing>, machine: &Arc<dyn Machine>, table: Table) -> Self {
        standing.set_until(u64::MAX);
        Self {
            inside: Arc::new(Inside {
                me: standing.me(),
                standing: standing.clone(),
                machine: machine.clone(),
                known: Mutex::new(Known {
                    table,
                    since: Instant::now(),
                    tries: BTreeMap::new(),
                    said: None,
                }),
                stop: AtomicBool::new(false),
            }),
            thread: None,
        }
    }

    /// Which buckets may come.
    #[must_use]
    pub fn admits(&self) -> Arc<dyn Admits> {
        self.inside.clone()
    }

    /// Looks at the file from now on, and hands over what it says; `say` hears of what cannot be done.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn watch(
        &mut self,
        file: &Path,
        peers: impl Peers + 'static,
        mut say: impl FnMut(&str) + Send + 'static,
    ) -> std::io::Result<()> {
        let (inside, file) = (self.inside.clone(), file.to_owned());
        let thread = std::thread::Builder::new().name("cluster".to_owned());
        let begun = thread.spawn(move || {
            while !inside.stop.load(Ordering::Relaxed) {
                let looked = inside.look(&file).and_then(|()| inside.act(&peers));
                let mut known = inside.lock();
                let more = looked == Ok(true);
                let why = looked.err();
                if let Some(why) = why.as_ref().filter(|why| known.said.as_ref() != Some(why)) {
                    say(why);
                }
                known.said = why;
                drop(known);
                if !more {
                    std::thread::park_timeout(LOOK);
                }
            }
        });
        self.thread = Some(begun?);
        Ok(())
    }
}

impl Drop for Fixed {
    fn drop(&mut self) {
        self.inside.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked does nothing any more.
            let _ = thread.join();
        }
    }
}

impl Inside {
    fn lock(&self) -> MutexGuard<'_, Known> {
        // Each change is one assignment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a newer version of the file.
    fn look(&self, file: &Path) -> Result<(), String> {
        let plan = Plan::read(file).map_err(|e| e.to_string())?;
        let mut known = self.lock();
        if plan.version <= known.table.version {
            return Ok(());
        }
        let wanted = plan.table(self.machine.buckets());
        let wanted = wanted.map_err(|e| format!("{}: {e}", file.display()))?;
        // A number means one node for ever.
        let same = |(old, new): (&Node, &Node)| old.name == new.name;
        let mut kept = known.table.nodes.iter().zip(&wanted.nodes);
        if wanted.nodes.len() < known.table.nodes.len() || !kept.all(same) {
            return Err(format!(
                "{}: nodes stay in their places: say `alive = false` of one that is gone, and add others at the end",
                file.display()
            ));
        }
        known.table.version = wanted.version;
        known.table.nodes = wanted.nodes;
        known.table.wanted = wanted.owners;
        known.since = Instant::now();
        known.tries.clear();
        self.standing.set_table(known.table.clone());
        Ok(())
    }

    /// The owner of a bucket is another one.
    fn owned(&self, known: &mut Known, bucket: u32, by: Option<NodeId>) {
        if let Some(owner) = known.table.owners.get_mut(bucket as usize) {
            *owner = by;
        }
        self.standing.set_table(known.table.clone());
    }

    /// Does what there is to do for buckets that are not where they shall be; whether there is more to do at once.
    ///
    /// # Errors
    /// Why one stays.
    fn act(&self, peers: &dyn Peers) -> Result<bool, String> {
        let table = self.lock().table.clone();
        let (mut why, mut offered) = (Ok(()), 0);
        let both = table.owners.iter().zip(&table.wanted);
        let goes = |(_, (has, wants)): &(u32, (_, &Option<NodeId>))| {
            has != wants && *has == &Some(self.me)
        };
        let goes = (0..).zip(both.clone()).filter(goes);
        let goes = goes.map(|(bucket, _)| bucket);
        let goes: Vec<u32> = goes.filter(|b| !self.tried(*b)).collect();
        if !goes.is_empty() {
            self.machine.foresee(&goes);
        }
        for (bucket, (has, wants)) in (0..).zip(both).filter(|(_, (has, wants))| has != wants) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let lives = |id: &NodeId| table.node(*id).is_some_and(|n| n.alive);
            match (has.filter(lives), wants) {
                (Some(has), Some(to)) if has == self.me => {
                    // The file may say something else by now.
                    offered += usize::from(!self.tried(bucket));
                    if offered > PASS {
                        break;
                    }
                    let to = table.node(*to).map(|node| (*to, node));
                    if let Some(Err(e)) = to.map(|to| self.give(bucket, to, &table, peers)) {
                        why = Err(format!("bucket {bucket} stays here: {}", e.why));
                    }
                }
                // Nobody has it: it begins empty.
                (None, Some(to)) if *to == self.me => {
                    self.machine.settle(bucket, Place::Here, None);
                    self.owned(&mut self.lock(), bucket, Some(self.me));
                }
                // It is offered by who has it.
                (Some(_), Some(to)) if *to == self.me => {}
                (_, to) => {
                    let mut known = self.lock();
                    if known.since.elapsed() > LATER {
                        if *has == Some(self.me) {
                            self.machine.settle(bucket, Place::Away, None);
                        }
                        self.owned(&mut known, bucket, *to);
                    }
                }
            }
        }
        why.map(|()| offered > PASS)
    }

    /// Whether a bucket was offered as often as it may be.
    fn tried(&self, bucket: u32) -> bool {
        let known = self.lock();
        known
            .tries
            .get(&bucket)
            .is_some_and(|tries| *tries >= TRIES)
    }

    fn give(
        &self,
        bucket: u32,
        (id, to): (NodeId, &Node),
        table: &Table,
        peers: &dyn Peers,
    ) -> Result<(), Refused> {
        let tries = *self.lock().tries.get(&bucket).unwrap_or(&0);
        if tries >= TRIES {
            return Ok(());
        }
        if !to.alive {
            return Err(refused(format!("{} is said not to be alive", to.name)));
        }
        let entries = self.machine.give(bucket)?;
        let what = HandOver {
            bucket,
            version: table.version,
            fingerprint: self.machine.fingerprint(),
            entries,
        };
        let handed = peers.hand(to, &what);
        if handed.is_err() {
            self.machine
                .settle(bucket, Place::Here, Some(&what.entries));
            self.lock().tries.insert(bucket, tries + 1);
            return handed;
        }
        // In this order: packets that waited go by the table.
        self.owned(&mut self.lock(), bucket, Some(id));
        self.machine.settle(bucket, Place::Away, None);
        Ok(())
    }
}

impl Admits for Inside {
    fn may(&self, bucket: u32, version: u64, from: &str) -> Result<(), Refused> {
        let known = self.lock();
        let table = &known.table;
        let owner = table.owner(bucket).and_then(|id| table.node(id));
        let wanted = table.wanted.get(bucket as usize).copied().flatten();
        match () {
            () if version != table.version => Err(refused(format!(
                "bucket {bucket} is offered under version {version} of the table, and this node has {}",
                table.version
            ))),
            () if wanted != Some(self.me) => Err(refused(format!(
                "bucket {bucket} is not to come here, by version {version} of the table"
            ))),
            () if owner.is_none_or(|owner| owner.name != from) => Err(refused(format!(
                "bucket {bucket} is not {from}'s, by version {version} of the table"
            ))),
            () => Ok(()),
        }
    }

    fn take(&self, what: &HandOver, from: &str) -> Result<(), Refused> {
        // The table may have changed meanwhile.
        self.may(what.bucket, what.version, from)?;
        self.machine.accept(what)
    }

    fn came(&self, bucket: u32, yours: bool) {
        if yours {
            let mut known = self.lock();
            self.machine.settle(bucket, Place::Here, None);
            self.owned(&mut known, bucket, Some(self.me));
        } else {
            // The sender may have kept it: what came is forgotten, and may come again.
            self.machine.settle(bucket, Place::Away, None);
        }
    }
}
