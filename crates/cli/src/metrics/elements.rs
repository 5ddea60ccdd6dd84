//! The elements of a chain as families of metrics: functions, drop reasons, and the programs that guests are.

use std::collections::BTreeMap;
use std::fmt::Error;

use millrace_dataplane::account::{Account, GuestAccount, StageAccount};
use millrace_dataplane::worker::condition::State;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;

use super::Latest;
use super::family::{Labels, counts, gauges, times};

pub fn encode(encoder: &mut DescriptorEncoder<'_>, latest: &Latest) -> Result<(), Error> {
    let account = &latest.account;
    counts(
        encoder,
        (
            "drops",
            "Packets dropped or aborted, by reason; function is empty where the run itself dropped them",
        ),
        None,
        drops(account),
    )?;
    counts(
        encoder,
        ("function_packets", "Packets that went through a function"),
        None,
        { account.stages.iter() }.map(|s| ([("function", s.name.clone())], s.packets)),
    )?;
    times(
        encoder,
        ("function", "Time inside a function, over all workers"),
        { latest.inside.iter() }.map(|(name, s)| ([("function", name.clone())], *s)),
    )?;
    tables(encoder, account)?;
    guests(encoder, account)
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

fn tables(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
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
    gauges(
        encoder,
        (
            "object_entries",
            "Places of a state object that are taken, those of expired entries that are not reclaimed yet included",
        ),
        None,
        known().map(|(labels, t)| (labels.clone(), t.used.unwrap_or(0) as f64)),
    )?;
    gauges(
        encoder,
        ("object_capacity", "The most entries of a state object"),
        None,
        known().map(|(labels, t)| (labels.clone(), t.capacity as f64)),
    )?;
    counts(
        encoder,
        (
            "object_refusals",
            "Insertions that found every place of a state object taken: refused, or made in the place of another entry",
        ),
        None,
        all.iter().map(|(labels, t)| (labels.clone(), t.refused)),
    )
}

fn guests(encoder: &mut DescriptorEncoder<'_>, account: &Account) -> Result<(), Error> {
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
    gauges(
        encoder,
        (
            "guest_state",
            "1 for the state that a guest is in, 0 for the others",
        ),
        None,
        states,
    )?;
    let of = |value: fn(&GuestAccount) -> u64| all.iter().map(move |(l, g)| (l.clone(), value(g)));
    counts(
        encoder,
        ("guest_failures", "Times that a guest has failed"),
        None,
        of(|g| g.failures),
    )?;
    counts(
        encoder,
        (
            "guest_restarts",
            "Times that a guest has been started again",
        ),
        None,
        of(|g| g.restarts),
    )?;
    let missed = all.iter().flat_map(|([function, class], guest)| {
        [("passed", guest.passed_by), ("dropped", guest.dropped)].map(|(fate, packets)| {
            let labels = [function.clone(), class.clone(), ("fate", fate.to_owned())];
            (labels, packets)
        })
    });
    counts(
        encoder,
        (
            "guest_missed_packets",
            "Packets that a guest did not see because it did not run: they passed it by, or were dropped",
        ),
        None,
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
    gauges(
        encoder,
        (
            "guest_last_failure_time",
            "When a guest failed last, since the epoch, and its cause in a word",
        ),
        Some(&Unit::Seconds),
        last,
    )
}
