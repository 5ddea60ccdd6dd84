//! How a function runs on several workers: what becomes of each of its state objects, and who gets which
//! packet. What `plan` says, or the user by hand, becomes what workers need, by one way for `run`, `bench` and
//! `verify`: [`Proved::arrange`].

mod balance;
mod by_hand;
mod foreseen;
mod held;
pub(crate) mod hybrid;
mod moving;
mod nodes;
mod owning;
pub(crate) mod parts;
mod planned;
mod replicated;

pub use foreseen::{Foreseen, Traffic};
pub use planned::{Purpose, reason, unguarded};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use millrace_check::Budget;
use millrace_control::Exposed;
use millrace_dataplane::classes::Classes;
use millrace_dataplane::module::Entry;
use millrace_emit::lock;
use millrace_model::Model;
use millrace_model::model::Use;
use millrace_object::program::ObjectId;
use millrace_place::{Held, Place, Placement, Strategy, Treatment};
use millrace_plan::cost::Prediction;
use millrace_plan::{Carried, Plan, Wanted, room};
use millrace_steer::{Field, Owners, Rss, Steering, nic};

pub use moving::buckets;
pub use nodes::{Divided, Nodes, Room};

use self::owning::Told;
use crate::cost::Frames;
use crate::ports::{NEVER, Ports};
use crate::written::Proved;
use crate::{Error, Make, seed};

/// The model that hashes in software: any fields of any kind.
const SOFTWARE: &str = "software";

/// More ports than any function has.
const MOST_PORTS: usize = 256;

/// Why a bundle is not taken whose plan locks.
const BUILT: &str = "a bundle was built with state for one core; give its source or its object";

/// What is asked of an arrangement.
pub struct Asked<'a> {
    /// workers, at least 2; 1 where other machines have workers, too
    pub cores: usize,
    /// how the whole shall run; none: what the plan takes for the best
    pub strategy: Option<Strategy>,
    /// who gets which packet, by port, in place of what the plan says
    pub steering: Option<Vec<Steering>>,
    /// the model of the NIC whose hash steers packets, by its name in crates/steer/nics
    pub nic: &'a str,
    /// captures that the indirection table is balanced to
    pub trace: Option<&'a Ports>,
    /// packets that are known before they come, for which the fastest strategy is taken where none is asked for; none: what the plan
    /// says without them
    pub foreseen: Option<&'a Foreseen<'a>>,
    /// what the keys are drawn from; none: a fresh secret
    pub secret: Option<[u8; 32]>,
    /// other machines keep copies of what is divided
    pub copied: bool,
    /// what is left for the object; none: the plan has no bound but its own
    pub budget: Option<Budget>,
}

impl Default for Asked<'_> {
    /// On two workers that hash in software, as the plan takes it for the best.
    fn default() -> Self {
        Self {
            cores: 2,
            strategy: None,
            steering: None,
            nic: SOFTWARE,
            trace: None,
            foreseen: None,
            secret: None,
            copied: false,
            budget: None,
        }
    }
}

impl Asked<'_> {
    /// What a model is needed for.
    #[must_use]
    pub fn purpose(&self) -> Purpose {
        Purpose::of(self.strategy, self.steering.is_some())
    }
}

/// How a function runs on several workers, and why.
pub struct Arrangement {
    /// on how many
    pub workers: usize,
    /// how its objects live, and who gets which packet
    pub placement: Arc<Placement>,
    /// what it was made from; none where the user says who gets which packet
    pub plan: Option<Plan>,
    /// why, in a few lines
    pub reasons: Vec<String>,
}

/// Answer to the question how a function runs on several workers.
pub enum Answer {
    /// like this
    Several(Box<Arrangement>),
    /// it runs on one, as its plan says
    One(Box<Plan>),
}

impl Answer {
    /// The arrangement.
    ///
    /// # Errors
    /// It runs on one core; [`crate::Kind::No`], with the plan's reasons.
    pub fn several(self, cores: usize) -> Result<Arrangement, Error> {
        match self {
            Self::Several(arrangement) => Ok(*arrangement),
            Self::One(plan) => Err(planned::on_one_core(&plan, cores)),
        }
    }

    /// With these reasons more.
    fn because(mut self, reasons: Vec<String>) -> Self {
        if let Self::Several(arrangement) = &mut self {
            arrangement.reasons.extend(reasons);
        }
        self
    }
}

impl Arrangement {
    /// The rate that is expected of it, where it was measured what strategies make of the traffic.
    #[must_use]
    pub fn predicted(&self) -> Option<Prediction> {
        let plan = self.plan.as_ref()?;
        plan.prediction(plan.strategy)
    }

    /// The same function, made with each worker's part of its objects.
    #[must_use]
    pub fn divided(&self, make: &Make) -> Make {
        Make {
            placement: Some(self.placement.clone()),
            workers: self.workers,
            ..make.with_capacities(&self.placement.parts())
        }
    }
}

/// The steering of each of `ports` ports, also where any packet may go anywhere.
///
/// # Errors
/// More workers than the indirection table has entries.
pub fn dispatch(
    placement: &Placement,
    ports: usize,
    workers: usize,
) -> Result<Vec<Steering>, Error> {
    match placement.steering(ports) {
        Some(steering) => Ok(steering),
        None => Ok(vec![anywhere(workers)?; ports]),
    }
}

/// Owners of the packets of each of `ports` ports.
///
/// # Errors
/// As [`dispatch`].
pub fn owners(placement: &Placement, ports: usize, workers: usize) -> Result<Vec<Owners>, Error> {
    let steered = dispatch(placement, ports, workers)?;
    Ok(steered.iter().map(Steering::owners).collect())
}

/// Contents at start, those of divided objects each with the worker that has it. Elements of arrays are on all workers.
///
/// # Errors
/// The key of an entry does not tell its worker, or `ON_START` looks for entries of that object, which no worker has all of.
pub fn owned(
    placement: &Placement,
    workers: usize,
    exposed: &Exposed,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>, Error> {
    for entry in &mut entries {
        let name = exposed.info(entry.object).map_or("", |o| o.name.as_str());
        if placement.held(name) != Held::Divided || exposed.indexed(entry.object) {
            continue;
        }
        let refused = |why: &str| {
            Error::wrong(format!(
                "--cores {workers}: packets write `{name}`, which is divided over the workers, and {why}"
            ))
            .help("use --cores 1, or leave the contents out")
        };
        let owning = placement.owning.as_ref();
        if owning.is_some_and(|o| !o.begins(entry.object)) {
            return Err(refused(
                "ON_START works on it, which on one core would see all contents, and here one worker's",
            ));
        }
        entry.worker = owning.and_then(|o| o.owner(entry.object, &entry.key));
        if entry.worker.is_none() {
            let key = exposed.show_key(entry.object, &entry.key);
            return Err(refused(&format!(
                "its key {key} does not tell which worker has the entry"
            )));
        }
    }
    Ok(entries)
}

impl Proved<'_> {
    /// How it runs on several workers: as its plan says, or as the user does by hand.
    ///
    /// # Errors
    /// It cannot run as was asked.
    pub fn arrange(&self, model: &mut Model, asked: &Asked<'_>) -> Result<Answer, Error> {
        let (program, checked, cores) = (self.program, &self.checked, asked.cores);
        if asked.strategy == Some(Strategy::Replicate) && asked.steering.is_none() {
            if asked.trace.is_some() {
                return Err(Error::wrong(
                    "--trace: it balances a table, and packets go to replicas in turn, by none",
                )
                .help("leave --trace out, or ask for hybrid, which shards by a table"));
            }
            return replicated::arrange(self, model, (cores, None));
        }
        if asked.strategy == Some(Strategy::Hybrid) && asked.steering.is_none() {
            return hybrid::arrange(self, model, asked, None);
        }
        if let Some(steering) = &asked.steering {
            // Of the plan only what it says of objects whoever gets which packet.
            let one = Wanted {
                cores: 1,
                solver_time: Duration::ZERO,
                ..Wanted::default()
            };
            let plan = millrace_plan::plan(model, program, &one)?;
            let treatments = by_hand::treatments(model, program, checked, &plan, cores)?;
            let found = self.stand(model, &treatments, steering.clone(), cores);
            return Ok(found.arrangement(cores, None));
        }
        let wanted = Wanted {
            // One of several machines may have one core: state is divided all the same.
            cores: cores.max(2) as u32,
            nic: asked.nic.to_owned(),
            strategy: asked.strategy,
            // What was built before leases any number to anybody: where its numbers come home is not in it.
            carried: match self.built {
                true => Carried::Compared,
                false => Carried::default(),
            },
            budget: asked.budget,
            ..Wanted::default()
        };
        let mut plan = self.plan(model, &wanted)?;
        let mut measured = Vec::new();
        if let (Some(foreseen), None) = (asked.foreseen, asked.strategy) {
            (plan, measured) = self.foreseen(plan, model, &wanted, foreseen);
            let answer = match plan.strategy {
                Strategy::Replicate => Some(replicated::arrange(
                    self,
                    model,
                    (cores, Some(plan.clone())),
                )?),
                Strategy::Hybrid => Some(hybrid::arrange(self, model, asked, Some(&plan))?),
                _ => None,
            };
            if let Some(answer) = answer {
                return Ok(answer.because(measured));
            }
        }
        let mut traced = None;
        if let Some(ports) = asked.trace {
            let frames = Frames::read(ports, &ports.names(&program.ports)?, &NEVER)?;
            let found = self.preferred(plan, model, &wanted, &frames);
            plan = found.0;
            traced = Some((ports, frames, found.1));
        }
        if plan.strategy == Strategy::Alone {
            return Ok(Answer::One(Box::new(plan)));
        }
        let treatments: Vec<_> = (0..program.objects.len())
            .map(|object| plan.treatment(ObjectId(object)))
            .collect();
        if self.built
            && (treatments
                .iter()
                .any(|t| matches!(t, Treatment::Lock | Treatment::Transact))
                || !plan.homes.is_empty())
        {
            return Err(on_one(&program.name, cores, BUILT));
        }
        let anywhere = plan.strategy == Strategy::Spread && asked.trace.is_none();
        let mut steering = match anywhere {
            // Whichever worker receives a packet may have it.
            true => Vec::new(),
            false => plan
                .steering(
                    program.ports.len().clamp(1, MOST_PORTS),
                    asked.secret.unwrap_or_else(seed::keys),
                )
                .map_err(|e| Error::wrong(format!("--cores {cores}: {e}")))?,
        };
        let mut reasons = planned::besides(&plan);
        if let Some((ports, frames, why)) = traced {
            reasons.extend(why);
            reasons.push(balance::to(&plan, ports, &frames, &mut steering)?);
        }
        let mut found = self.stand(model, &treatments, steering, cores);
        found.placement.noted = asked.copied;
        if let Some(first) = plan.homes.first() {
            found.placement.indexes = first.indexes;
            for (object, table) in plan.home_tables(&found.placement.steering) {
                if let Some(place) = found.placement.objects.get_mut(object.0) {
                    place.home = Some(table);
                }
            }
        }
        if !found.placement.steering.is_empty() {
            found.placement.owning = Some(Told::of(&plan, model, &found.placement.steering));
            match plan.buckets(program, &found.placement.steering) {
                Ok(buckets) => found.placement.buckets = Some(buckets),
                Err(stays) => {
                    let line = stays
                        .line
                        .as_ref()
                        .map_or_else(String::new, |l| format!("{l}: "));
                    found.placement.stays = Some(format!("{line}{stays}"));
                }
            }
        }
        found.reasons.extend(reasons);
        found.reasons.extend(measured);
        Ok(found.arrangement(cores, Some(plan)))
    }

    /// The placement of each object, with room for each worker's part of what is divided.
    fn stand(
        &self,
        model: &Model,
        treatments: &[Treatment],
        steering: Vec<Steering>,
        cores: usize,
    ) -> Stand {
        let program = self.program;
        let largest = steering
            .iter()
            .map(Steering::largest_share)
            .fold(0.0, f64::max);
        let mut objects = Vec::new();
        let mut parts = Vec::new();
        for ((id, object), treatment) in (0..).map(ObjectId).zip(&program.objects).zip(treatments) {
            let held = held::held(model, id, object, *treatment);
            let mut place = Place::new(object, held);
            // What was built before keeps its size, and so does what is addressed by an index: any worker may need
            // any of it.
            if *treatment == Treatment::Shard && cores > 1 && room::divides(object) {
                if !self.built {
                    place.part = room::part(object, largest, cores);
                }
                let mut sized = object.clone();
                sized.capacity = place.part;
                let bytes = sized.bytes().saturating_mul(cores as u64);
                parts.push(format!(
                    "{} of {} entries as {cores} of {}, {} MiB in all",
                    object.name,
                    place.whole,
                    place.part,
                    bytes.div_ceil(1 << 20)
                ));
            }
            objects.push(place);
        }
        let mut placement = Placement {
            objects,
            steering,
            ..Placement::default()
        };
        let mut reasons = Vec::new();
        let mut said = |what: &str, names: &[&str]| {
            if !names.is_empty() {
                reasons.push(format!("{}: {what}: {}", program.name, names.join(", ")));
            }
        };
        let of = |treatment: Treatment| -> Vec<&str> {
            let names = placement.names(|held| held.treatment() == treatment);
            names.collect()
        };
        let (divided, locked) = (of(Treatment::Shard), of(Treatment::Lock));
        let transacted = of(Treatment::Transact);
        if divided.is_empty() && locked.is_empty() && transacted.is_empty() {
            said("spread", &["any packet on any worker"]);
        }
        said(&format!("shard over {cores} workers"), &divided);
        said(&format!("one for {cores} workers, under a lock"), &locked);
        said(
            &format!("one for {cores} workers, whose packets are transactions"),
            &transacted,
        );
        said("each worker adds to its own", &of(Treatment::Merge));
        if !parts.is_empty() {
            reasons.push(format!("divided: {}", parts.join(", ")));
        }
        let locked = { placement.objects.iter().enumerate() }.filter(|(_, o)| o.held.shared());
        let locked = locked.map(|(object, _)| ObjectId(object)).collect();
        placement.apart = lock::apart(program, &self.checked, &locked);
        Stand { placement, reasons }
    }
}

/// A placement, and why it is so in a few lines.
struct Stand {
    placement: Placement,
    reasons: Vec<String>,
}

impl Stand {
    fn arrangement(self, workers: usize, plan: Option<Plan>) -> Answer {
        Answer::Several(Box::new(Arrangement {
            workers,
            placement: Arc::new(self.placement),
            plan,
            reasons: self.reasons,
        }))
    }
}

/// Whether packets or timers write an object.
fn written(model: &Model, object: ObjectId) -> bool {
    let usage = model.objects.get(object.0).map(|o| o.usage);
    !matches!(
        usage,
        Some(Use::Unused | Use::ReadOnly | Use::WrittenAtStart)
    )
}

/// Packet classes, dealt out to this many workers. All packets between two hosts are of one class, in both directions,
/// fragments and errors included; what is not IP is of class 0.
///
/// # Errors
/// More classes than the indirection table has entries.
pub fn classes(classes: u16, workers: usize) -> Result<Arc<Classes>, Error> {
    let device = nic::named(SOFTWARE).map_err(Error::wrong)?;
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
        .map_err(Error::wrong)?;
    Ok(Classes::new(
        vec![plain(nic, true).owners()],
        classes,
        workers,
    ))
}

/// Repeated, a key under which swapping two fields that stand a multiple of 16 bits apart leaves the hash as it is
/// (Woo and Park, Scalable TCP session monitoring with symmetric receive-side scaling, 2012).
const SYMMETRIC: [u8; 2] = [0x6d, 0x5a];

fn anywhere(cores: usize) -> Result<Steering, Error> {
    let device = nic::named(SOFTWARE).map_err(Error::wrong)?;
    let most = device.table_sizes.iter().copied().max().unwrap_or(1);
    enough(SOFTWARE, most, cores)?;
    Ok(plain(Rss::new(&device, cores as u32), false))
}

/// A steering by one NIC's hash, of all packets alike; `inside`: of those that carry another packet, by that one.
#[must_use]
pub fn plain(nic: Rss, inside: bool) -> Steering {
    Steering {
        nic,
        software: BTreeMap::new(),
        inside,
        echoes: false,
        odd: None,
    }
}

/// Refuses more workers than a table has entries: some would never get a packet.
///
/// # Errors
/// There are more.
pub fn enough(model: &str, entries: usize, cores: usize) -> Result<(), Error> {
    if cores <= entries {
        return Ok(());
    }
    Err(Error::wrong(format!(
        "--cores {cores}: the indirection table of model {model} has {entries} entries, and a worker without one gets no packet"
    ))
    .help(format!("use at most {entries} workers, or a model with a larger table")))
}

/// That a function runs on one worker, for this reason.
#[must_use]
pub fn on_one(name: &str, cores: usize, why: &str) -> Error {
    Error::wrong(format!("--cores {cores}: {name} runs on one core: {why}")).help(
        "use --cores 1: several workers are for functions whose packets write no state, or state that the fields of packets divide (--steer)",
    )
}
