//! The elements of a chain as families of metrics: functions, drop reasons, and the programs that guests are.

use std::collections::BTreeMap;
use std::fmt::Error;

use millrace_dataplane::account::{Account, GuestAccount, StageAccount};
use millrace_dataplane::worker::condition::State;

use super::Latest;
use super::family::{Families, Labels};

pub fn encode(to: &mut Families<'_>, latest: &Latest) -> Result<(), Error> {
    let account = &latest.account;
    to.counts(
        "drops",
        "Packets dropped or aborted, by reason; function is empty where the run itself dropped them",
        drops(account),
    )?;
    to.counts(
        "function_packets",
        "Packets that went through a function",
        { account.stages.iter() }.map(|s| ([("function", s.name.clone())], s.packets)),
    )?;
    to.times(
        "function",
        "Time inside a function, over all workers",
        { latest.inside.iter() }.map(|(name, s)| ([("function", name.clone())], *s)),
    )?;
    tables(to, account)?;
    guests(to, account)
}

/// Reasons by element. What the account has beyond those of its elements the run itself has dropped.
fn drops(account: &Account) -> Vec<(Labels<2>, u64)> {
    let label = |function: &str, reason: &str| {
        [
            ("function", function.to_owned()),
            ("reason", reason.to_owned()),
        ]
    };
    let several = account.stages.len() > 1;
    let mut own: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = Vec::new();
    for stage in &account.stages {
        for (reason, packets) in &stage.reasons {
            let (function, own_name) = of(stage, reason);
            all.push((label(function, own_name), *packets));
            let key = match several && !stage.linked {
                true => format!("{}:{reason}", stage.name),
                false => reason.clone(),
            };
            *own.entry(key).or_default() += packets;
        }
    }
    for (reason, packets) in &account.reasons {
        let known = own.get(reason).copied().unwrap_or(0);
        if *packets > known {
            all.push((label("", reason), packets - known));
        }
    }
    all
}

/// The element that an object or a reason belongs to, and its name there: the same whether elements were linked or not.
fn of<'a>(stage: &'a StageAccount, name: &'a str) -> (&'a str, &'a str) {
    let own = name.split_once(':').filter(|_| stage.linked);
    own.unwrap_or((&stage.name, name))
}

fn tables(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let all = account.stages.iter().flat_map(|stage| {
        stage.tables.iter().map(|table| {
            let (function, object) = of(stage, &table.name);
            let labels = [
                ("function", function.to_owned()),
                ("object", object.to_owned()),
            ];
            (labels, table)
        })
    });
    let all: Vec<_> = all.collect();
    let known = || all.iter().filter(|(_, t)| t.used.is_some());
    to.gauges(
        "object_entries",
        "Places of a state object that are taken, those of expired entries that are not reclaimed yet included",
        known().map(|(labels, t)| (labels.clone(), t.used.unwrap_or(0) as f64)),
    )?;
    to.gauges(
        "object_capacity",
        "The most entries of a state object",
        known().map(|(labels, t)| (labels.clone(), t.capacity as f64)),
    )?;
    to.counts(
        "object_refusals",
        "Insertions that found every place of a state object taken: refused, or made in the place of another entry",
        all.iter().map(|(labels, t)| (labels.clone(), t.refused)),
    )
}

fn guests(to: &mut Families<'_>, account: &Account) -> Result<(), Error> {
    let label = |function: &str, guest: &GuestAccount| -> Labels<2> {
        let class = guest.class.map_or_else(String::new, |c| c.to_string());
        [("function", function.to_owned()), ("class", class)]
    };
    let all: Vec<_> = { account.stages.iter() }
        .flat_map(|s| s.guests.iter().map(|g| (label(&s.name, g), g)))
        .collect();
    let states = all.iter().flat_map(|([function, class], guest)| {
        State::ALL.map(|state| {
            let state = state.name();
            let labels = [function.clone(), class.clone(), ("state", state.to_owned())];
            (labels, f64::from(u8::from(guest.state == state)))
        })
    });
    to.gauges(
        "guest_state",
        "1 for the state that a guest is in, 0 for the others",
        states,
    )?;
    let of = |value: fn(&GuestAccount) -> u64| all.iter().map(move |(l, g)| (l.clone(), value(g)));
    to.counts(
        "guest_failures",
        "Times that a guest has failed",
        of(|g| g.failures),
    )?;
    to.counts(
        "guest_restarts",
        "Times that a guest has been started again",
        of(|g| g.restarts),
    )?;
    let missed = all.iter().flat_map(|([function, class], guest)| {
        [("passed", guest.passed_by), ("dropped", guest.dropped)].map(|(fate, packets)| {
            let labels = [function.clone(), class.clone(), ("fate", fate.to_owned())];
            (labels, packets)
        })
    });
    to.counts(
        "guest_missed_packets",
        "Packets that a guest did not see because it did not run: they passed it by, or were dropped",
        missed,
    )?;
    let last = all.iter().filter_map(|([function, class], guest)| {
        let last = guest.last_failure.as_ref()?;
        let labels = [
            function.clone(),
            class.clone(),
            ("cause", last.cause.clone()),
        ];
        Some((labels, last.time))
    });
    to.seconds(
        "guest_last_failure_time",
        "When a guest failed last, since the epoch, and its cause in a word",
        last,
    )
}
