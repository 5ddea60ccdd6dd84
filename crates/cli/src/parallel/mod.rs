//! How a function runs on several workers: what becomes of each of its state objects, and who gets which
//! packet. What `plan` says, or the user by hand, becomes what workers need, by one way for `run`, `bench` and
//! `verify`: [`arranged`].

pub mod balance;
pub mod by_hand;
mod held;
pub mod homes;
pub mod planned;

use std::sync::Arc;
use std::time::Duration;

use millrace_check::{Budget, Checked};
use millrace_control::Exposed;
use millrace_dataplane::classes::Classes;
use millrace_dataplane::module::{Entry, Homes};
use millrace_dataplane::share::Share;
use millrace_emit::lock;
use millrace_model::Model;
use millrace_model::model::Use;
use millrace_object::program::{ObjectId, Program};
use millrace_place::{Held, Place, Placement, Strategy, Treatment};
use millrace_plan::{Carried, Plan, Wanted, room};
use millrace_steer::{Field, Owners, Rss, Steering, nic};

use crate::budget;
use crate::failure::Failure;
use crate::function::{self, Function, Make};
use crate::strategy::Wished;
use crate::wiring::Words;
use crate::word::{self, Source};
pub use planned::secret;

/// The model that hashes in software: any fields of any kind.
const SOFTWARE: &str = "software";

/// More ports than any function has.
const MOST_PORTS: usize = 256;

/// Why a shared object that was built before is not taken.
const ALONE: &str = "a module alone does not tell what it writes";

/// Why a bundle is not taken whose plan locks.
const BUILT: &str = "a bundle was built with state for one core; give its source or its object";

/// The user's options.
pub struct Asked<'a> {
    /// `--cores`, at least 2
    pub cores: usize,
    /// `--strategy`
    pub strategy: Wished,
    /// `--steer`
    pub steer: &'a [String],
    /// the model of the NIC whose hash steers packets
    pub nic: &'a str,
    /// captures that the indirection table is balanced to
    pub trace: Option<Words<'a>>,
    /// what the keys are drawn from; none: a fresh secret
    pub secret: Option<[u8; 32]>,
    /// the module was built before: what it locks and how large its objects are does not change any more
    pub built: bool,
    /// what is left for the object; none: of the plan alone
    pub budget: Option<Budget>,
}

impl Asked<'_> {
    /// What a model is asked for.
    fn strategies(&self) -> planned::Strategies {
        strategies(self.strategy, self.steer)
    }
}

/// Purposes of the model under `--strategy` and `--steer`.
pub fn strategies(strategy: Wished, steer: &[String]) -> planned::Strategies {
    match (steer, strategy) {
        ([_, ..], _) => planned::Strategies::ByHand,
        (_, Wished::LOCK) => planned::Strategies::Locked,
        _ => planned::Strategies::Any,
    }
}

/// How a function runs on several workers, and why.
#[derive(Default)]
pub struct Arrangement {
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

impl Arrangement {
    /// Where packets come home that carry leased numbers.
    pub fn homes(&self) -> Option<Arc<Homes>> {
        Homes::of_placement(&self.placement).map(Arc::new)
    }

    /// Owners of the packets of each of `ports` ports.
    ///
    /// # Errors
    /// More workers than the indirection table has entries.
    pub fn owners(&self, ports: usize, cores: usize) -> Result<Vec<Owners>, Failure> {
        let steered = self.dispatch(ports, cores)?;
        Ok(steered.iter().map(Steering::owners).collect())
    }

    /// The steering of each of `ports` ports, also where any packet may go anywhere.
    ///
    /// # Errors
    /// As [`Self::owners`].
    pub fn dispatch(&self, ports: usize, cores: usize) -> Result<Vec<Steering>, Failure> {
        match self.placement.steering(ports) {
            Some(steering) => Ok(steering),
            None => Ok(vec![anywhere(cores)?; ports]),
        }
    }

    /// Share of each object, in the module's order.
    pub fn shares(&self, function: &Function) -> Vec<Share> {
        Share::of(&self.placement, &function.module)
    }

    /// Refuses a function of which the state of all workers takes more than it may.
    ///
    /// # Errors
    /// It does.
    pub fn fits(&self, function: &Function, cores: usize) -> Result<(), Failure> {
        let shares = self.shares(function);
        budget::maps(function, |object| {
            match shares.get(object).map(|s| &s.held) {
                Some(Held::Locked) => 1,
                _ => cores as u64,
            }
        })
    }

    /// Lets whoever looks at the function's state from outside know how it stands.
    pub fn tell(&self, function: &mut Function) {
        let shares = self.shares(function);
        // Just loaded: nobody else has it yet.
        if let Some(exposed) = Arc::get_mut(&mut function.exposed) {
            exposed.shares = shares;
        }
    }

    /// The same function, made with each worker's part of its objects.
    pub fn divided(&self, make: &Make) -> Make {
        Make {
            placement: Some(self.placement.clone()),
            ..make.with_capacities(&self.placement.parts())
        }
    }

    /// Refuses contents at start of an object that is divided: nothing says which worker has an entry. Elements of
    /// arrays are on all workers.
    ///
    /// # Errors
    /// There are some.
    pub fn allow_contents(
        &self,
        exposed: &Exposed,
        entries: &[Entry],
        cores: usize,
    ) -> Result<(), Failure> {
        let parted = |object: usize| {
            let name = exposed.info(object).map_or("", |o| o.name.as_str());
            self.placement.held(name) == Held::Divided && !exposed.indexed(object)
        };
        let Some(entry) = entries.iter().find(|e| parted(e.object)) else {
            return Ok(());
        };
        let name = exposed.info(entry.object).map_or("", |o| o.name.as_str());
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
pub fn arrange(word: &str, make: &Make, asked: Asked<'_>) -> Result<Arrangement, Failure> {
    let found = word::find(word)?;
    if let Source::Module(path) = &found.source {
        let name = path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into());
        return Err(refused(&name, asked.cores, ALONE));
    }
    let (program, _) = function::typed(word, &make.capacity, make.program.as_deref())?;
    let program = function::settled(program, &make.set)?;
    let budget = make.budget.unwrap_or_else(budget::begin);
    let checked = function::proved(word, &program, budget)?;
    let asked = Asked {
        built: matches!(found.source, Source::Bundle(_)),
        budget: Some(budget),
        ..asked
    };
    let mut model = planned::model(
        &program,
        &checked,
        (millrace_model::SECONDS, budget),
        asked.strategies(),
    );
    match arranged(&mut model, &program, &checked, &asked)? {
        Answer::Several(arrangement) => Ok(*arrangement),
        Answer::One(plan) => Err(planned::on_one_core(&plan, asked.cores)),
    }
}

/// How a program runs on several workers: as its plan says, or as the user does by hand.
///
/// # Errors
/// It cannot run as was asked.
pub fn arranged(
    model: &mut Model,
    program: &Program,
    checked: &Checked,
    asked: &Asked<'_>,
) -> Result<Answer, Failure> {
    let cores = asked.cores;
    let wanted = Wanted {
        cores: cores as u32,
        nic: asked.nic.to_owned(),
        strategy: asked.strategy.0,
        // What was built before leases any number to anybody: where its numbers come home is not in it.
        carried: match asked.built {
            true => Carried::Compared,
            false => Carried::default(),
        },
        budget: asked.budget,
        ..Wanted::default()
    };
    if !asked.steer.is_empty() {
        let steering = by_hand::steering(asked.steer, &program.ports, cores)?;
        // Of the plan only what it says of objects whoever gets which packet.
        let one = Wanted {
            cores: 1,
            solver_time: Duration::ZERO,
            ..Wanted::default()
        };
        let plan = millrace_plan::plan(model, program, &one);
        let plan = plan.map_err(|e| planned::impossible(&e))?;
        let treatments = by_hand::treatments(model, program, checked, &plan, cores)?;
        let found = stand(model, program, checked, &treatments, steering, asked);
        return Ok(Answer::Several(Box::new(Arrangement {
            placement: Arc::new(found.placement),
            plan: None,
            reasons: found.reasons,
        })));
    }
    let plan = planned::plan(model, program, checked, &wanted);
    let mut plan = plan.map_err(|e| planned::impossible(&e))?;
    let mut traced = None;
    if let Some(words) = &asked.trace {
        let frames = balance::frames(program, words)?;
        let found = balance::preferred(plan, model, (program, checked), &wanted, &frames);
        plan = found.0;
        traced = Some((words, frames, found.1));
    }
    if plan.strategy == Strategy::Alone {
        return Ok(Answer::One(Box::new(plan)));
    }
    let treatments: Vec<_> = (0..program.objects.len())
        .map(|object| plan.treatment(ObjectId(object)))
        .collect();
    if asked.built && (treatments.contains(&Treatment::Lock) || !plan.homes.is_empty()) {
        return Err(refused(&program.name, cores, BUILT));
    }
    let anywhere = plan.strategy == Strategy::Spread && asked.trace.is_none();
    let mut steering = match anywhere {
        // Whichever worker receives a packet may have it.
        true => Vec::new(),
        false => plan
            .steering(
                program.ports.len().clamp(1, MOST_PORTS),
                asked.secret.unwrap_or_else(secret),
            )
            .map_err(|e| Failure::wrong(format!("--cores {cores}: {e}")))?,
    };
    let mut reasons = planned::besides(&plan);
    if let Some((words, frames, why)) = traced {
        reasons.extend(why);
        reasons.push(balance::to(&plan, words, &frames, &mut steering)?);
    }
    let mut found = stand(model, program, checked, &treatments, steering, asked);
    homes::come_home(&mut found.placement, &plan);
    found.reasons.extend(reasons);
    Ok(Answer::Several(Box::new(Arrangement {
        placement: Arc::new(found.placement),
        plan: Some(plan),
        reasons: found.reasons,
    })))
}

/// A placement, and why it is so in a few lines.
struct Stand {
    placement: Placement,
    reasons: Vec<String>,
}

/// The placement of each object, with room for each worker's part of what is divided.
fn stand(
    model: &Model,
    program: &Program,
    checked: &Checked,
    treatments: &[Treatment],
    steering: Vec<Steering>,
    asked: &Asked<'_>,
) -> Stand {
    let cores = asked.cores;
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
            if !asked.built {
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
    if divided.is_empty() && locked.is_empty() {
        said("spread", &["any packet on any worker"]);
    }
    said(&format!("shard over {cores} workers"), &divided);
    said(&format!("one for {cores} workers, under a lock"), &locked);
    said("each worker adds to its own", &of(Treatment::Merge));
    if !parts.is_empty() {
        reasons.push(format!("divided: {}", parts.join(", ")));
    }
    let locked = { placement.objects.iter().enumerate() }.filter(|(_, o)| o.held == Held::Locked);
    let locked = locked.map(|(object, _)| ObjectId(object)).collect();
    placement.apart = lock::apart(program, checked, &locked);
    Stand { placement, reasons }
}

/// Whether packets or timers write an object.
fn written(model: &Model, object: ObjectId) -> bool {
    let usage = model.objects.get(object.0).map(|o| o.usage);
    !matches!(
        usage,
        Some(Use::Unused | Use::ReadOnly | Use::WrittenAtStart)
    )
}

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
        odd: None,
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
        odd: None,
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
