//! What a plan means for several machines of a cluster: whether buckets can be divided among them, room, packets that go between machines, and what may
//! differ from one machine.

use millrace_object::Program;
use millrace_place::{Strategy, Treatment};
use millrace_plan::{Plan, room};
use serde::Serialize;

/// How packets are divided among machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Divided {
    /// each machine has a part of the buckets
    Buckets,
    /// any machine may have any packet: nothing goes between them
    Anywhere,
    /// they cannot be: it runs on one machine
    No,
}

/// Room for the entries of an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Room {
    /// the object
    pub object: String,
    /// entries that a machine with its part of the buckets has room for
    pub each: u64,
    /// entries of all machines
    pub all: u64,
}

/// A plan on several machines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Nodes {
    /// how many
    pub count: u32,
    /// how packets are divided
    pub divided: Divided,
    /// why they cannot be
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// buckets in all, and how many a machine has at most
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<(u32, u32)>,
    /// of objects whose entries are divided
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<Room>,
    /// the part of packets that a router's hash, which knows no buckets, brings to another machine than that of their bucket
    pub forwarded: f64,
    /// what may differ from one machine
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

impl Nodes {
    /// Of a program whose plan is for at least two cores, on `count` machines, at least one.
    #[must_use]
    pub fn of(plan: &Plan, program: &Program, count: u32) -> Self {
        let mut nodes = Self {
            count,
            divided: Divided::No,
            why: None,
            buckets: None,
            capacity: Vec::new(),
            forwarded: 0.0,
            differs: Vec::new(),
        };
        let is = |wanted: fn(&Treatment) -> bool| {
            let mut objects = plan.objects.iter();
            objects.find(|o| wanted(&o.treatment))
        };
        let shared =
            |t: &Treatment| !matches!(t, Treatment::Spread | Treatment::Shard | Treatment::Merge);
        if let Some(object) = is(shared) {
            nodes.why = Some(format!(
                "`{}` is {}: machines do not see one another's",
                object.name,
                object.treatment.name()
            ));
            return nodes;
        }
        if is(|t| *t == Treatment::Merge).is_some() {
            nodes.differs.push(
                "each machine counts its own packets: what is merged is the sum over all"
                    .to_owned(),
            );
        }
        if is(|t| *t == Treatment::Spread).is_some() {
            nodes
                .differs
                .push("what is set from outside has to be set on each machine".to_owned());
        }
        if is(|t| *t == Treatment::Shard).is_none() {
            nodes.divided = if plan.strategy == Strategy::Alone {
                Divided::No
            } else {
                Divided::Anywhere
            };
            return nodes;
        }
        // Any key has as many buckets.
        let steering = plan.steering(program.ports.len().max(1), [0; 32]);
        let found = steering.map_err(|e| e.to_string());
        let found = found.and_then(|s| plan.buckets(program, &s).map_err(|e| e.to_string()));
        let buckets = match found {
            Ok(buckets) => buckets.count(),
            Err(why) => {
                nodes.why = Some(why);
                return nodes;
            }
        };
        let most = buckets.div_ceil(count.max(1));
        nodes.divided = Divided::Buckets;
        nodes.buckets = Some((buckets, most));
        nodes.forwarded = f64::from(count.saturating_sub(1)) / f64::from(count.max(1));
        for planned in plan
            .objects
            .iter()
            .filter(|o| o.treatment == Treatment::Shard)
        {
            let Some(object) = program.objects.get(planned.id.0) else {
                continue;
            };
            let (whole, home) = (
                object.capacity,
                plan.homes.iter().find(|h| h.id == planned.id),
            );
            let room = |each, all| Room {
                object: planned.name.clone(),
                each,
                all,
            };
            match home {
                // A number is one bucket's, whichever machine has that.
                Some(home) => {
                    let each = home.numbers * u64::from(home.indexes) * u64::from(most)
                        / u64::from(buckets.max(1));
                    nodes.capacity.push(room(each, whole));
                }
                // A machine has room for all buckets: others may be drained.
                None if room::divides(object) => {
                    nodes
                        .capacity
                        .push(room(whole, whole.saturating_mul(count.into())));
                }
                None => {}
            }
        }
        if nodes.capacity.iter().any(|c| c.all > c.each) {
            nodes.differs.push("a machine's room can be used up while others have some, and all together have more than one".to_owned());
        }
        nodes.differs.push(
            "packets of a bucket on its way wait; entries of a machine that dies are lost"
                .to_owned(),
        );
        nodes
            .differs
            .push("time is each machine's own: clocks may differ by a second at most".to_owned());
        nodes
    }
}
