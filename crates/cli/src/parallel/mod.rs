//! How a function runs on several workers: what becomes of each of its state objects, and who gets which
//! packet. What `plan` says, or the user by hand, becomes what workers need.

mod balance;
pub mod by_hand;
pub mod homes;
pub mod planned;
mod words;
pub mod writes;

use std::sync::Arc;

use clap::ValueEnum;
use millrace_check::Checked;
use millrace_control::merged::Word;
use millrace_dataplane::classes::Classes;
use millrace_dataplane::module::Homes;
use millrace_dataplane::share::{self, Share};
use millrace_object::program::{ObjectId, Program};
use millrace_steer::{Field, Owners, Rss, Steering, nic};

use crate::failure::Failure;
use crate::function::{self, Function, Make};
use crate::trouble;
use crate::wiring::Words;
use crate::word::{self, Source};
use homes::ComingHome;
use planned::Planned;
pub use planned::secret;

/// The model that hashes in software: any fields of any kind.
const SOFTWARE: &str = "software";

/// More ports than any function has.
const MOST_PORTS: usize = 256;

/// Why a shared object that was built before is not taken.
const ALONE: &str = "a module alone does not tell what it writes";

/// Why a bundle is not taken whose plan locks.
const BUILT: &str = "a bundle was built with state for one core; give its source or its object";

/// How state lives on several workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Strategy {
    /// what the plan takes for the best
    #[default]
    Best,
    /// any packet on any worker, for functions whose packets write no state
    Spread,
    /// packets that touch the same state meet on one worker, which keeps it for itself
    Shard,
    /// on one worker, whatever the number of cores
    Sequential,
    /// what packets write is one for all workers, under a lock
    Lock,
}

/// How long, in seconds, the model may take where all is locked whatever the paths are.
pub const LITTLE: u64 = 5;

impl Strategy {
    /// The one of the plan; none: whatever it takes for the best.
    #[must_use]
    pub fn of_plan(self) -> Option<millrace_plan::Strategy> {
        match self {
            Self::Best => None,
            Self::Spread => Some(millrace_plan::Strategy::Spread),
            Self::Shard => Some(millrace_plan::Strategy::Shard),
            Self::Lock => Some(millrace_plan::Strategy::Lock),
            Self::Sequential => Some(millrace_plan::Strategy::Alone),
        }
    }
}

/// What the user says of it.
pub struct Asked<'a> {
    /// `--cores`
    pub cores: usize,
    /// `--strategy`
    pub strategy: Strategy,
    /// `--steer`
    pub steer: &'a [String],
    /// the model of the NIC whose hash steers packets
    pub nic: &'a str,
    /// captures that the indirection table is balanced to
    pub trace: Option<Words<'a>>,
}

/// How a function runs on several workers.
#[derive(Default)]
pub struct Arrangement {
    /// what becomes of an object, by name; those that are not here are copies
    shares: Vec<(String, Share)>,
    /// the capacity of each worker's part, where that is not the declared one
    capacities: Vec<(String, u64)>,
    /// the objects that are one for all workers
    shared: Vec<String>,
    /// the objects to which each worker adds by itself, and which numbers those are
    merged: Vec<(String, Vec<Word>)>,
    /// how far apart in the packets' time workers may be, ns
    pub apart: Option<u64>,
    /// a port each, the last one for those behind it; none: any packet anywhere
    steering: Vec<Steering>,
    /// allocators whose numbers come home
    home: Option<ComingHome>,
    /// why, in a few lines
    pub reasons: Vec<String>,
}

impl Arrangement {
    /// How the whole runs, e.g. `shard`.
    pub fn strategy(&self) -> &'static str {
        let divided = |(_, share): &(String, Share)| matches!(share, Share::Divided { .. });
        match (self.shares.iter().any(divided), !self.shared.is_empty()) {
            (true, true) => "mixed",
            (true, false) => "shard",
            (false, true) => "lock",
            (false, false) => "spread",
        }
    }

    /// Where packets come home that carry leased numbers.
    pub fn homes(&self) -> Option<Arc<Homes>> {
        self.home.as_ref().map(|h| h.homes.clone())
    }

    /// Who owns the packets of each of `ports` ports.
    ///
    /// # Errors
    /// More workers than the indirection table has entries.
    pub fn owners(&self, ports: usize, cores: usize) -> Result<Vec<Owners>, Failure> {
        let anywhere = [anywhere(cores)?];
        let steering = match self.steering.as_slice() {
            [] => &anywhere,
            some => some,
        };
        let of = |port: usize| steering.get(port).or(steering.last());
        Ok((0..ports).filter_map(of).map(Steering::owners).collect())
    }

    /// The steering of each of `ports` ports; none where any packet may go anywhere.
    pub fn steering(&self, ports: usize) -> Option<Vec<Steering>> {
        let last = self.steering.last()?;
        let of = |port: usize| self.steering.get(port).unwrap_or(last).clone();
        Some((0..ports).map(of).collect())
    }

    /// What becomes of each object, in the module's order.
    pub fn shares(&self, function: &Function) -> Vec<Share> {
        let of = |name: &str| self.shares.iter().find(|(n, _)| n == name);
        let objects = function.module.objects().iter();
        objects
            .map(|o| of(&o.name).map_or(Share::Replicated, |(_, share)| *share))
            .collect()
    }

    /// Lets whoever looks at the function's state from outside know what is divided.
    pub fn tell(&self, function: &mut Function) {
        let shares = self.shares(function);
        let divided = shares
            .iter()
            .enumerate()
            .filter_map(|(at, share)| match share {
                Share::Divided { whole } => Some((at, *whole)),
                Share::Merged | Share::Replicated => None,
            });
        let objects = function.module.objects().iter().enumerate();
        let merged = objects.filter_map(|(at, o)| {
            let (_, words) = self.merged.iter().find(|(name, _)| *name == o.name)?;
            Some((at, words.clone()))
        });
        let merged = merged.collect();
        // Just loaded: nobody else has it yet.
        if let Some(exposed) = std::sync::Arc::get_mut(&mut function.exposed) {
            (exposed.divided, exposed.merged) = (divided.collect(), merged);
        }
    }

    /// The same function, made with each worker's part of its objects.
    pub fn divided(&self, make: &Make) -> Make {
        let own = |text: &&String| {
            let name = text.split_once('=').map_or("", |(name, _)| name);
            !self.capacities.iter().any(|(n, _)| n == name)
        };
        let mut capacity: Vec<_> = make.capacity.iter().filter(own).cloned().collect();
        let parts = self.capacities.iter();
        capacity.extend(parts.map(|(name, part)| format!("{name}={part}")));
        Make {
            capacity,
            shared: self.shared.clone(),
            homes: self.home.iter().flat_map(|h| h.names.clone()).collect(),
            ..make.clone()
        }
    }

    /// Refuses contents at start of an object that is divided: nothing says which worker has an entry.
    ///
    /// # Errors
    /// There are some.
    pub fn allow_contents(
        &self,
        function: &Function,
        entries: &[millrace_dataplane::module::Entry],
        cores: usize,
    ) -> Result<(), Failure> {
        let shares = self.shares(function);
        let parted = |object: usize| matches!(shares.get(object), Some(Share::Divided { .. }));
        let Some(entry) = entries.iter().find(|e| parted(e.object)) else {
            return Ok(());
        };
        let name = function.module.objects().get(entry.object);
        let name = name.map_or("", |o| o.name.as_str());
        Err(Failure::wrong(format!(
            "--cores {cores}: packets write `{name}`, which is divided over the workers, and its contents at start do not say which worker has an entry"
        ))
        .help("use --cores 1, or leave the contents out"))
    }
}

/// Finds out how a function is to run on several workers.
///
/// # Errors
/// It runs on one core, or not as was asked.
pub fn arrange(word: &str, make: &Make, asked: &Asked<'_>) -> Result<Arrangement, Failure> {
    let cores = asked.cores;
    let found = word::find(word)?;
    if let Source::Module(path) = &found.source {
        let name = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into());
        return Err(refused(&name, cores, ALONE));
    }
    let (program, _) = function::typed(word, &make.capacity, make.program.as_deref())?;
    let program = function::settled(program, &make.set)?;
    let bundle = matches!(found.source, Source::Bundle(_));
    let checked = function::prove(&program).map_err(|r| trouble::refused(&program.name, &r))?;
    let writes = writes::all(&program, &checked);
    if !asked.steer.is_empty() {
        let steering = by_hand::steering(asked.steer, &program.ports, cores)?;
        let written: Vec<_> = writes.iter().filter_map(|w| w.id).collect();
        let is_written = |(index, _): &(usize, _)| written.iter().any(|id| id.0 == *index);
        let objects = program.objects.iter().enumerate();
        let names = objects.filter(is_written).map(|(_, o)| o.name.clone());
        let by_hand = Planned {
            divided: names.collect(),
            steering,
            ..Planned::default()
        };
        return Ok(arranged(&program, &checked, by_hand, cores, bundle));
    }
    if writes.is_empty() && asked.strategy != Strategy::Shard {
        return Ok(Arrangement {
            reasons: vec![format!("{}: spread: packets write no state", program.name)],
            ..Arrangement::default()
        });
    }
    let planned = planned::plan(&program, &checked, asked)?;
    if bundle && (!planned.locked.is_empty() || planned.home.is_some()) {
        return Err(refused(&program.name, cores, BUILT));
    }
    Ok(arranged(&program, &checked, planned, cores, bundle))
}

/// What is planned, with room for each worker's part of what is divided.
fn arranged(
    program: &Program,
    checked: &Checked,
    planned: Planned,
    cores: usize,
    bundle: bool,
) -> Arrangement {
    let largest = planned
        .steering
        .iter()
        .map(Steering::largest_share)
        .fold(0.0, f64::max);
    let (mut shares, mut capacities, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    let mut merged = Vec::new();
    for (id, object) in (0..).map(ObjectId).zip(&program.objects) {
        if planned.merged.contains(&object.name) {
            shares.push((object.name.clone(), Share::Merged));
            merged.push((object.name.clone(), words::of(checked, program, id)));
        }
        if !planned.divided.contains(&object.name) {
            continue;
        }
        let whole = object.capacity;
        shares.push((object.name.clone(), Share::Divided { whole }));
        // What was built before keeps its size, and so does what is addressed by an index: any worker may need
        // any of it.
        let part = share::part(whole, largest, cores);
        if !bundle && TABLES.contains(&object.kind.name) && part < whole {
            parts.push(format!(
                "{} of {whole} entries as {cores} of {part}",
                object.name
            ));
            capacities.push((object.name.clone(), part));
        }
    }
    let mut reasons = Vec::new();
    let mut said = |what: &str, names: &[String]| {
        if !names.is_empty() {
            reasons.push(format!("{}: {what}: {}", program.name, names.join(", ")));
        }
    };
    said(&format!("shard over {cores} workers"), &planned.divided);
    said(
        &format!("one for {cores} workers, under a lock"),
        &planned.locked,
    );
    said("each worker adds to its own", &planned.merged);
    if !parts.is_empty() {
        reasons.push(format!("divided: {}", parts.join(", ")));
    }
    reasons.extend(planned.reasons);
    Arrangement {
        shares,
        capacities,
        shared: planned.locked,
        merged,
        apart: planned.apart,
        steering: planned.steering,
        home: planned.home,
        reasons,
    }
}

/// Kinds whose entries are found by a hash of their key: a part of them takes a part of the room.
pub const TABLES: [&str; 5] = ["map", "hash", "lru_hash", "percpu_hash", "lru_percpu_hash"];

/// Packet classes, dealt out to so many workers. All packets between two hosts are of one class, in both directions,
/// fragments and errors included; what is not IP is of class 0.
///
/// # Errors
/// More classes than the indirection table has entries.
pub fn classes(classes: u16, workers: usize) -> Result<Arc<Classes>, Failure> {
    let device = nic::named(SOFTWARE).map_err(Failure::wrong)?;
    let most = device.table_sizes.iter().copied().max().unwrap_or(1);
    enough(SOFTWARE, most, usize::from(classes))?;
    let key: Vec<u8> = SYMMETRIC
        .iter()
        .copied()
        .cycle()
        .take(device.key_bytes)
        .collect();
    let nic = Rss::new(&device, u32::from(classes))
        .with_key(&device, &key)
        .and_then(|rss| rss.with_only(&device, &[Field::SourceAddress, Field::DestinationAddress]))
        .map_err(Failure::wrong)?;
    let steering = Steering {
        nic,
        software: std::collections::BTreeMap::new(),
        inside: true,
        echoes: false,
    };
    Ok(Classes::new(vec![steering.owners()], classes, workers))
}

/// Repeated, a key under which swapping two fields that stand a multiple of 16 bits apart leaves the hash as it is
/// (Woo and Park, Scalable TCP session monitoring with symmetric receive-side scaling, 2012).
const SYMMETRIC: [u8; 2] = [0x6d, 0x5a];

fn anywhere(cores: usize) -> Result<Steering, Failure> {
    let device = nic::named(SOFTWARE).map_err(Failure::wrong)?;
    let most = device.table_sizes.iter().copied().max().unwrap_or(1);
    enough(SOFTWARE, most, cores)?;
    Ok(Steering {
        nic: Rss::new(&device, cores as u32),
        software: std::collections::BTreeMap::new(),
        inside: false,
        echoes: false,
    })
}

/// Refuses more workers than a table has entries: some would never get a packet.
fn enough(model: &str, entries: usize, cores: usize) -> Result<(), Failure> {
    if cores <= entries {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "--cores {cores}: the indirection table of model {model} has {entries} entries, and a worker without one gets no packet"
    ))
    .help(format!("use at most {entries} workers, or a model with a larger table")))
}

fn refused(name: &str, cores: usize, why: &str) -> Failure {
    Failure::wrong(format!("--cores {cores}: {name} runs on one core: {why}")).help(
        "use --cores 1: several workers are for functions whose packets write no state, or state that the fields of packets divide (--steer)",
    )
}
