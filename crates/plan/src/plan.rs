//! The value that this stage gives.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use millrace_history::History;
pub use millrace_model::sums::Word;
use millrace_model::weaken::weak;
use millrace_object::program::ObjectId;
use millrace_place::{Strategy, Treatment};
use millrace_steer::keys::Keys;
use millrace_steer::table::repeated;
use millrace_steer::{Field, Kind, Nic, Odd, Rss, RssError, Steering};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

pub use crate::computed::Asked;
use crate::cost::{Measured, Prediction};
use crate::placed::{Finder, Placed};
use crate::rules::homing::{Home, spread};
use crate::solved::{Solved, slot};

/// On what grounds a strategy was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grounds {
    /// nothing was measured: what shards is sharded, and only what does not is locked
    Order,
    /// it was asked for
    Asked,
    /// it is the fastest of those that were measured (`predicted`)
    Measured,
}

/// The rule that decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum Rule {
    /// nothing writes it after the start, or its changes commute and nothing depends on them: it asks for nothing
    #[serde(rename = "none")]
    Nothing,
    /// key equality: packets with equal keys meet
    R1,
    /// subsumption: another object's packets meet already whenever this one's must
    R2,
    /// disjoint dependencies: what this object and another need cannot both be had
    R3,
    /// incompatible dependencies: its key is nothing that packets can be separated by
    R4,
    /// interchangeable constraints: a mismatch behaves as a miss, so the fields that are compared separate it
    R5,
    /// homing: its numbers are leased so that packets which carry one come home by it
    R6,
    /// replication: every core has all of it, and repeats what packets of others do to it from their rows
    R7,
}

/// A treatment that an object could have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// which
    pub treatment: Treatment,
    /// why it could not, where it could not
    pub impossible: Option<String>,
}

/// Treatment of an object, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ObjectPlan {
    /// index into `Program::objects`
    #[serde(skip)]
    pub id: ObjectId,
    /// the author's name for it
    pub name: String,
    /// what is done
    pub treatment: Treatment,
    /// every treatment that there is, the preferred one first, of which it was chosen
    #[serde(skip)]
    pub offers: Vec<Offer>,
    /// the rule that decided
    pub rule: Rule,
    /// the reason, in a sentence or two
    pub reason: String,
    /// what change of the program would make another treatment possible, where this one is not `spread` or `shard`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// FILE:LINE of the access that the reason is about
    pub line: Option<String>,
    /// it is proved that no key of a NIC shards it together with what is sharded
    pub infeasible: bool,
    /// of what is merged: the numbers in a value that are summed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
    /// what a solver was asked about its keys, where they are computed from fields and equations do not say enough
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// of a packet set: whether packets can be steered by it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<SetPlan>,
}

/// Whether the packets of a set can be brought to one core by what the NIC hashes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SetPlan {
    /// they can
    pub steered: bool,
    /// by which fields, PORT: FIELD
    pub fields: Vec<String>,
    /// which field of the key prevents it, in a sentence
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prevents: Option<String>,
}

/// How one kind of packet of a port is steered.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KindPlan {
    /// the kind, as in `Kind::name`
    pub kind: String,
    /// who brings it to its core: `nic`, or `software` where the NIC cannot: the receiving core, over a ring
    pub by: By,
    /// it reaches state that is sharded; others go where they go
    pub bound: bool,
    /// the fields that decide
    pub fields: Vec<String>,
    /// the fields that the NIC hashes and that the key makes count for nothing
    pub cancelled: Vec<String>,
    /// dimension of what the hash can tell apart, whatever bits are looked at
    pub rank: u32,
    /// the same of the bits that index the indirection table: 2^this entries can be reached
    pub table_rank: u32,
    /// no key has more, which is proved; otherwise it is only probable
    pub certified: bool,
    /// what somebody must guess who knows the program, but not the key; none where all packets are on one core,
    /// or all cores do
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guess: Option<Guess>,
    /// traffic of which all packets, or nearly all, are on one core although there are many
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degenerate: Vec<Degenerate>,
    /// why all of them are on one core, where an access of such packets is to blame: source line and object
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Traffic that a key cannot spread over all cores: what decides is the same in all of its packets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Degenerate {
    /// the fields that are the same
    pub fields: Vec<Held>,
    /// cores that such packets reach at most
    pub cores: u32,
    /// such packets in words, e.g. `packets to one address and port`
    pub traffic: String,
}

/// A field that is the same in all packets, as far as it counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Held {
    /// its name
    pub field: String,
    /// bits of it that reach the index of the indirection table under some key
    pub bits: u32,
    /// its width
    pub of: u32,
    /// these are its first ones, and not all
    pub prefix: bool,
}

/// Effort to aim packets of a kind at one core (`millrace_steer::keys::Exposure`; docs/plan.md).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Guess {
    /// header bits that must be guessed for a second flow that shares the table entry of a first: two flows that
    /// differ by d do under one key in 2^r(d), and this is the least r(d) of the weakest differences
    pub entry_bits: u32,
    /// the same for sharing its core: the base-2 logarithm of how many flows it takes on average
    pub core_bits: f64,
}

/// The part that steers: NIC or software.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// the NIC
    Nic,
    /// the core that received it
    Software,
}

/// How one port's packets are steered.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PortPlan {
    /// the author's name for it; `*` where the program names no ports and treats all alike
    pub name: String,
    /// by kind of packet; kinds that are not here touch no state that is sharded, and go anywhere
    pub kinds: Vec<KindPlan>,
    /// software looks inside packets: ICMP errors go where the answer to the packet that they carry would go,
    /// and first fragments where the whole packet would
    pub inside: bool,
    /// software looks for the identifiers of ICMP echoes: a request goes where a UDP packet from that port would, a
    /// reply where one to that port would
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub echoes: bool,
    /// software reads packets as the program does where a NIC reads them otherwise, and takes their ports from a fixed
    /// place (`fixed`) or from behind as many words as the header says (`behind-header`)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odd: Option<&'static str>,
    /// dimension of the space from which this port's key is drawn, bits
    pub key_space: u32,
}

/// Ways in which the run may differ from the sequential program, counted when it does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Relaxation {
    /// `capacity`, `eviction`, `collision`, `lease`, `latest`, `cpu`, `queue`, `order` or `lost`
    pub name: &'static str,
    /// the object
    pub object: String,
    /// what it means here
    pub meaning: String,
}

/// An allocator whose numbers come home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HomePlan {
    /// index into `Program::objects`
    #[serde(skip)]
    pub id: ObjectId,
    /// the author's name for it
    pub object: String,
    /// where packets carry its numbers, by which they find the lease; none where no packet does
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub carried: Option<CarriedPlan>,
    /// indexes of the indirection table over which the numbers are told apart
    pub indexes: u32,
    /// numbers that each index has, on average, rounded down; when they run out a flow is refused although others
    /// are free, which is counted as `capacity`
    pub numbers: u64,
    #[serde(skip)]
    pub(crate) first: u64,
    #[serde(skip)]
    pub(crate) capacity: u64,
    #[serde(skip)]
    pub(crate) home: Home,
}

/// Where packets carry a leased number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CarriedPlan {
    /// the port where they come in
    pub port: String,
    /// the field that the number stands in
    pub field: String,
}

/// A parameter that the plan takes to have this value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Assumption {
    /// its name
    pub parameter: String,
    /// its value
    pub value: u64,
    /// what would be different otherwise
    pub because: String,
}

/// How a program may run on many cores.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// the program's name
    pub name: String,
    /// how the whole runs
    pub strategy: Strategy,
    /// why so and not otherwise, where there is a choice
    pub grounds: Grounds,
    /// cores that it was made for
    pub cores: u32,
    /// the NIC's model
    pub nic: String,
    /// whether the paths that it was made from are all, and each is possible
    pub exhaustive: bool,
    /// whether every execution takes one of them; if not, nothing is sharded
    pub covers: bool,
    /// in the program's order
    pub objects: Vec<ObjectPlan>,
    /// in the program's order
    pub ports: Vec<PortPlan>,
    /// what of a packet reaches state, or why it cannot be told (R7); none where nobody asked
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// what may differ
    pub relaxations: Vec<Relaxation>,
    /// allocators whose numbers come home
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub homes: Vec<HomePlan>,
    /// parameters that must have these values
    pub assumptions: Vec<Assumption>,
    /// what is to be expected of each strategy at each number of cores; empty where nothing was measured
    pub predicted: Vec<Prediction>,
    /// what `predicted` was worked out from
    pub measured: Option<Measured>,
    /// time that it took, without the model's, ms
    pub took_ms: f64,
    /// of which the keys took that it has, from the constraints to their space
    pub keys_ms: f64,
    /// what the keys are drawn from
    #[serde(skip)]
    pub(crate) device: Nic,
    #[serde(skip)]
    pub(crate) software: Nic,
    #[serde(skip)]
    pub(crate) solved: Solved,
    #[serde(skip)]
    pub(crate) inside: BTreeSet<usize>,
    #[serde(skip)]
    pub(crate) echoes: bool,
    #[serde(skip)]
    pub(crate) odd: Option<Odd>,
    #[serde(skip)]
    pub(crate) placed: Vec<Placed>,
}

/// Keys that are tried until every index of the table has numbers that come home.
const DRAWS: usize = 64;

impl Plan {
    /// Treatment of an object; objects that the plan does not know are on one core.
    #[must_use]
    pub fn treatment(&self, object: ObjectId) -> Treatment {
        let found = self.objects.iter().find(|o| o.id == object);
        found.map_or(Treatment::Alone, |o| o.treatment)
    }

    /// What is expected of a strategy on as many cores as were asked for, where it was measured.
    #[must_use]
    pub fn prediction(&self, strategy: Strategy) -> Option<Prediction> {
        let mut all = self.predicted.iter();
        let found = all.find(|p| p.strategy == strategy && p.cores == self.cores);
        found.copied()
    }

    /// The steering of each of `ports` ports, with keys drawn from `secret`: the same secret gives the same
    /// keys. Queue `i` is core `i`.
    ///
    /// # Errors
    /// [`RssError`] when the device cannot take what was planned for it: more cores than its table has
    /// entries.
    pub fn steering(&self, ports: usize, secret: [u8; 32]) -> Result<Vec<Steering>, RssError> {
        let mut secret = ChaCha20Rng::from_seed(secret);
        let mut steering = self.drawn(ports, &mut secret)?;
        for _ in 1..DRAWS {
            if self.homes.is_empty() || self.poorest(&steering) > 0 {
                break;
            }
            steering = self.drawn(ports, &mut secret)?;
        }
        Ok(steering)
    }

    /// For each allocator whose numbers come home, the index of each of its numbers, from the first on, under a
    /// steering that [`Self::steering`] gave.
    #[must_use]
    pub fn home_tables(&self, steering: &[Steering]) -> Vec<(ObjectId, Vec<u32>)> {
        let mut known: BTreeMap<(&Home, u64, u64), Vec<u32>> = BTreeMap::new();
        let tables = self.homes.iter().filter_map(|h| {
            let table = match known.entry((&h.home, h.first, h.capacity)) {
                Entry::Occupied(there) => there.get().clone(),
                Entry::Vacant(place) => {
                    let table = h.home.table(steering, h.indexes, h.first, h.capacity)?;
                    place.insert(table).clone()
                }
            };
            Some((h.id, table))
        });
        tables.collect()
    }

    /// Tells under which entry of the indirection table entries of sharded objects lie, under a steering that
    /// [`Self::steering`] gave.
    #[must_use]
    pub fn finder(&self, steering: &[Steering]) -> Finder {
        Finder::of(&self.placed, steering)
    }

    /// How many numbers the index has that has the fewest.
    fn poorest(&self, steering: &[Steering]) -> u64 {
        let tables = self.home_tables(steering);
        let least = self.homes.iter().map(|h| {
            let table = tables.iter().find(|t| t.0 == h.id);
            table.map_or(0, |t| spread(&t.1, h.indexes).0)
        });
        least.min().unwrap_or(0)
    }

    /// One draw.
    fn drawn(&self, ports: usize, secret: &mut ChaCha20Rng) -> Result<Vec<Steering>, RssError> {
        let keys = self.solved.space.draw(secret);
        let count = self.ports.len().max(1);
        let one = |port: usize| {
            // A program without ports has one key for all of them.
            let port = port % count;
            let handed = self.handed(port);
            let odd = self.odd.filter(|_| handed.iter().any(|k| k.is_odd()));
            let software = if handed.is_empty() || weak("handed-over") {
                BTreeMap::new()
            } else {
                let rss = self.rss(&self.software, &keys, port, By::Software)?;
                handed.into_iter().map(|kind| (kind, rss.clone())).collect()
            };
            Ok(Steering {
                nic: self.rss(&self.device, &keys, port, By::Nic)?,
                software,
                inside: self.inside.contains(&port),
                echoes: self.echoes,
                odd,
            })
        };
        (0..ports).map(one).collect()
    }

    /// The kinds that software hashes on a port.
    fn handed(&self, port: usize) -> Vec<Kind> {
        let mine = self
            .solved
            .steered
            .iter()
            .filter(|s| s.packets.port == port);
        mine.filter(|s| s.by == By::Software)
            .map(|s| s.packets.kind)
            .collect()
    }

    /// Instructions for the part that hashes.
    fn rss(&self, nic: &Nic, keys: &Keys, port: usize, by: By) -> Result<Rss, RssError> {
        let slot = slot(port, by);
        let mut rss = Rss::new(nic, self.cores);
        if let Some(key) = keys.key(slot) {
            rss = rss.with_key(nic, key)?;
        }
        let mut hashed: BTreeMap<Kind, &[Field]> = BTreeMap::new();
        for s in self.solved.steered.iter().filter(|s| s.class.port == slot) {
            if let Some(kind) = s.class.hashed {
                hashed.insert(kind, &s.class.fields);
            }
        }
        for kind in nic.kinds.keys() {
            rss = rss.with_fields(nic, *kind, hashed.get(kind).copied().unwrap_or(&[]))?;
        }
        let entries = rss.table().len();
        let indexes = 1_usize << self.solved.space.index_bits();
        // By the secret permutation that was drawn with the keys: the plain high bits would say which bits of a header
        // never choose the core.
        let mut queues = keys.queues(self.cores);
        queues.resize(indexes, 0);
        let table = repeated(&queues, entries);
        rss.with_table(nic, &table, self.cores)
    }
}
