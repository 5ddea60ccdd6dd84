//! The account of a run: one fate for every packet read.

use std::collections::BTreeMap;

use millrace_traffic::capture::Written;
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::memory::Memory;
use crate::module::Conflict;
use crate::replica::Elephant;

/// Reason of packets longer than a module takes.
pub const OVERSIZE: &str = "oversize";
/// The reason of packets for which the slow path had no room.
pub const SLOW_FULL: &str = "slow_path_full";
/// Reason of packets sent to a port that does not exist.
pub const NO_SUCH_PORT: &str = "no_such_port";
/// Reason of packets that the program aborted.
pub const ABORTED: &str = "aborted";
/// Reason of packets flooded where there is no other port.
pub const NO_OTHER_PORT: &str = "no_other_port";

/// What became of the packets of a run. `read` is the sum of the five fates; the counts of `reasons`
/// are the sum of `dropped` and `aborted`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Account {
    /// packets read from all inputs
    pub read: u64,
    /// packets that left at one or more ports
    pub forwarded: u64,
    /// packets dropped, by the program or because they are longer than it can take
    pub dropped: u64,
    /// packets given to the host's own stack
    pub passed: u64,
    /// packets the program took
    pub consumed: u64,
    /// packets the program aborted, or sent where there is no port
    pub aborted: u64,
    /// packets that the outputs have taken and kept
    pub written: u64,
    /// packets sent beside those that were read: of a flood to n ports n - 1 copies, what elements send of their own, and what leaves slow
    /// paths
    pub created: u64,
    /// packets dropped or aborted, by reason
    pub reasons: BTreeMap<String, u64>,
    /// what happened otherwise than on one core, by name: `capacity`, insertions that found a worker's part
    /// of an object full while others had room, and records that found its ring full; `eviction`, entries that had to go
    /// for that reason; `latest`, entries of which workers stored other bytes last
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub relaxations: BTreeMap<String, u64>,
    /// seconds from the first read to the last write
    pub seconds: f64,
    /// million packets a second over that time, input and output included
    pub mpps: f64,
    /// the function alone
    pub function: Function,
    /// a port of the function each
    pub ports: Vec<PortAccount>,
    /// a worker each
    pub workers: Vec<WorkerAccount>,
    /// a worker each: the entry of the indirection table under which most of its packets came in the last second;
    /// none where it is not known who brings packets to workers, or there is one
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<EntryAccount>,
    /// a function of the chain each; none where one function runs over captures
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageAccount>,
    /// packets that ports lost, over all queues; they are in no fate, but for those that were not sent, which count as
    /// forwarded. None over captures
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostAccount>,
    /// a queue of a live port each
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueAccount>,
    /// what the live ports say of themselves
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// an output each
    pub outputs: Vec<OutputAccount>,
    /// records that came out of ring buffers, by object
    pub records: BTreeMap<String, u64>,
    /// times that a timer fired
    pub timers_fired: u64,
    /// rows of other workers' packets that workers applied to their replicas, over all of them; none where no state is
    /// replicated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<u64>,
    /// what packets did as transactions, over all workers; none where they are none
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionsAccount>,
    /// what packets of each worker met of others', of modules that are made for a profile
    #[serde(skip)]
    pub conflicts: Vec<(usize, Conflict)>,
    /// buckets of the indirection table that changed their workers; none where they do not
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved: Option<crate::classes::Counts>,
    /// packets and buckets between machines; none where there is one
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<crate::classes::away::PeerCounts>,
    /// rows that the sequencer made, heartbeats among them; none where no state is replicated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// keys that were replicated while others were sharded, in the order in which they were promoted; none for other strategies
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elephants: Option<Vec<Elephant>>,
    /// packets stamped earlier than one before them; the program saw the later time
    pub out_of_order: u64,
    /// state objects at the end
    pub objects: Vec<ObjectAccount>,
    /// predicted and measured
    pub memory: Memory,
    /// a signal or a request ended the run before its inputs did
    pub interrupted: bool,
    /// what ended the run before its inputs did, or kept an output from being complete
    pub errors: Vec<Failure>,
}

/// Packets as transactions (docs/transact.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TransactionsAccount {
    /// packets that committed beside others
    pub commits: u64,
    /// attempts that met another worker's packet and did not commit; each was followed by another one
    pub aborts: u64,
    /// attempts before which a packet took all words that it had met, after four
    pub holds: u64,
    /// packets that ran as the only one at work
    pub alone: u64,
    /// waits for other workers' packets before an entry's expiry was decided
    pub graces: u64,
    /// why packets ran alone, and how many; complete when the run is over
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
}

/// Something that went wrong during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// what
    pub error: String,
    /// what to do about it
    pub help: String,
}

impl From<crate::port::PortError> for Failure {
    fn from(error: crate::port::PortError) -> Self {
        Self {
            error: error.to_string(),
            help: error.help(),
        }
    }
}

/// How fast the function itself is: the time inside burst calls, nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Function {
    /// nanoseconds a packet: the mean, interruptions by other work included
    pub ns_per_packet: f64,
    /// million packets a second, from the mean
    pub mpps: f64,
    /// the median over packets of what a packet cost in its burst, ns
    pub p50_ns: f64,
    /// the 99th percentile of the same, ns
    pub p99_ns: f64,
}

/// A state object at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ObjectAccount {
    /// its name
    pub name: String,
    /// its kind
    pub kind: String,
    /// live entries, where they can be counted
    pub entries: Option<u64>,
    /// most entries
    pub capacity: u64,
    /// bytes it maps
    pub bytes: u64,
    /// where each of several workers has its own part: the live entries of each
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_worker: Vec<Option<u64>>,
    /// and the insertions of each that found its part full; empty where none did
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full_by_worker: Vec<u64>,
}

impl Function {
    /// From the time spent and the packets that went through; `each` holds ticks a packet.
    #[must_use]
    pub fn over(packets: u64, ns: f64, each: &Histogram, ns_per_tick: f64) -> Self {
        if packets == 0 || ns <= 0.0 {
            return Self::default();
        }
        let ns_per_packet = ns / packets as f64;
        Self {
            ns_per_packet,
            mpps: 1e3 / ns_per_packet,
            p50_ns: each.quantile(0.5) * ns_per_tick,
            p99_ns: each.quantile(0.99) * ns_per_tick,
        }
    }
}

/// The account of one port of the function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortAccount {
    /// its name, or its number where it has none
    pub name: String,
    /// packets that came in here
    pub read: u64,
    /// their bytes
    pub read_bytes: u64,
    /// of these, forwarded (anywhere)
    pub forwarded: u64,
    /// of these, dropped
    pub dropped: u64,
    /// of these, passed to the host
    pub passed: u64,
    /// of these, consumed
    pub consumed: u64,
    /// of these, aborted
    pub aborted: u64,
    /// packets sent out here, from anywhere
    pub sent: u64,
    /// their bytes
    pub sent_bytes: u64,
}

/// The account of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerAccount {
    /// its number
    pub worker: u32,
    /// packets it ran over
    pub packets: u64,
    /// bursts it ran
    pub bursts: u64,
    /// seconds inside the function
    pub seconds: f64,
    /// insertions that found its part of a divided object full
    pub full: u64,
    /// rows that it has not applied yet; none where no state is replicated
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
}

/// The heaviest entry of an indirection table, as one worker saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryAccount {
    /// the worker that it leads to
    pub worker: u32,
    /// the port that the packets came in at
    pub port: String,
    /// its place in the table
    pub entry: u32,
    /// how many entries the table has
    pub entries: u32,
    /// its part of all packets that the worker ran over in that second, 0 to 1; by sampling
    pub share: f64,
}

/// The account of one element of a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageAccount {
    /// its name
    pub name: String,
    /// packets that went through it
    pub packets: u64,
    /// calls
    pub bursts: u64,
    /// seconds inside it
    pub seconds: f64,
    /// cycles of the time stamp counter that a packet spent in it
    pub cycles_per_packet: f64,
    /// of the time inside all elements, 0 to 1
    pub share: f64,
    /// packets that it dropped, by reason; those of all elements are in the account's `reasons`
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// the programs that it hosts, one for each packet class; none of a function. The first worker's account has them
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestAccount>,
    /// how full its state objects are, those that keep that; of an element that has left those that were full
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableAccount>,
    /// what it handed over to its slow path; none where it has none. The first worker's account has it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<SlowAccount>,
    /// it is not in the chain any more
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// several elements were linked into it: its reasons and tables are called `ELEMENT:NAME`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub linked: bool,
}

/// What a function handed over to its slow path (docs/click.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowAccount {
    /// packets that it took
    pub handed: u64,
    /// packets for which it had no room: dropped, `slow_path_full`
    pub refused: u64,
    /// packets that left it, each counted as created where it left
    pub left: u64,
    /// packets that its elements dropped
    pub dropped: u64,
    /// packets that led to more than one may: what came after that is lost
    pub bounded: u64,
    /// elements at which packets were handed over
    pub elements: Vec<SlowElement>,
}

/// An element whose packets go to the slow path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowElement {
    /// the element, `NAME :: CLASS`
    pub element: String,
    /// why
    pub why: String,
    /// packets that were taken
    pub handed: u64,
    /// packets for which there was no room
    pub refused: u64,
}

/// How full a state object is, as its worker has seen it in about the last tenth of a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableAccount {
    /// its name
    pub name: String,
    /// its kind; empty of an element that has left
    pub kind: String,
    /// places taken: live entries, and those that have expired and have not been reclaimed yet; none where that is not kept
    pub used: Option<u64>,
    /// most entries
    pub capacity: u64,
    /// insertions that found every place taken: they were refused, or took the place of another entry
    pub refused: u64,
}

/// State of a hosted program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestAccount {
    /// what the program is called
    pub program: String,
    /// its packet class, where there is one of it for each
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<u32>,
    /// the slot that it lives in
    pub slot: u32,
    /// `running`, `restarting`, `failed`, `ended` or `moved` ([`crate::worker::condition::State`])
    pub state: String,
    /// times that it has been started again
    pub restarts: u64,
    /// times that it has failed
    pub failures: u64,
    /// packets that passed it by because it did not run
    pub passed_by: u64,
    /// packets that were dropped because it did not run
    pub dropped: u64,
    /// how it failed last
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<GuestFailure>,
}

/// A failure of a hosted program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuestFailure {
    /// one of few words: the signal's name, `status N`, `stuck`, `host`, `connection`
    pub cause: String,
    /// what happened
    pub error: String,
    /// when, seconds since the epoch
    pub time: f64,
}

/// Packets that ports lost, over all queues; see [`QueueAccount`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LostAccount {
    /// lost before anybody could receive them
    pub missed: u64,
    /// came, and could not be taken
    pub unfit: u64,
    /// taken to be sent, and refused by the device
    pub failed: u64,
}

impl LostAccount {
    /// Over these queues; none where there are none.
    #[must_use]
    pub fn of(queues: &[QueueAccount]) -> Option<Self> {
        let sum = |of: fn(&QueueAccount) -> u64| queues.iter().map(of).sum();
        (!queues.is_empty()).then(|| Self {
            missed: sum(|q| q.missed),
            unfit: sum(|q| q.unfit),
            failed: sum(|q| q.failed),
        })
    }
}

/// What a queue counted of packets that no worker saw, or that did not leave; see
/// [`crate::port::QueueCounts`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueAccount {
    /// the word that named the port
    pub name: String,
    /// whose queue it is
    pub worker: u32,
    /// lost before anybody could receive them
    pub missed: u64,
    /// came, and could not be taken
    pub unfit: u64,
    /// taken, and refused by the device
    pub failed: u64,
    /// dropped on purpose
    pub discarded: u64,
    /// added on purpose
    pub duplicated: u64,
    /// damaged on purpose, or put behind others
    pub altered: u64,
}

/// The account of one output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputAccount {
    /// the word that named it
    pub name: String,
    /// packets it keeps whole
    pub packets: u64,
    /// bytes up to the end of the last of them
    pub bytes: u64,
    /// why it is not complete
    pub error: Option<String>,
}

impl OutputAccount {
    /// An output that has kept this much.
    #[must_use]
    pub fn new(name: &str, written: Written, error: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            packets: written.packets,
            bytes: written.bytes,
            error,
        }
    }
}

impl Account {
    /// Whether each packet read has exactly one fate, in all and by port, and each one dropped or
    /// aborted a reason.
    #[must_use]
    pub fn balances(&self) -> bool {
        let fates = self.forwarded + self.dropped + self.passed + self.consumed + self.aborted;
        let reasons: u64 = self.reasons.values().sum();
        let sum = |of: fn(&PortAccount) -> u64| self.ports.iter().map(of).sum::<u64>();
        let of_port =
            |p: &PortAccount| p.read == p.forwarded + p.dropped + p.passed + p.consumed + p.aborted;
        self.read == fates
            && reasons == self.dropped + self.aborted
            && self.ports.iter().all(of_port)
            && sum(|p| p.read) == self.read
            && sum(|p| p.sent) == self.forwarded + self.created
    }
}
