//! Rules in Open vSwitch, packet by packet against the reference interpreter.

use std::collections::{BTreeMap, BTreeSet};

use millrace_switch::run::{Fate, Switch};
use millrace_switch::{Assumptions, Request, Server, compile};
use millrace_synth::reference::{Became, Passed, Reference};
use millrace_turns::its_turn;

use crate::common::{agrees, assumed, chain, expected, packets, request, rules};
use crate::vswitch::VSwitch;

/// Packets of each chain, at least; `MILLRACE_OVS_PACKETS` says how many.
fn count() -> usize {
    let asked = std::env::var("MILLRACE_OVS_PACKETS").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(1_000)
}

fn exercise(path: &str, assume: Assumptions) {
    let of = chain(path);
    let rules = rules(&of, assume);
    let all: Vec<u32> = request(&of)
        .ports
        .into_iter()
        .chain(rules.to_servers.clone())
        .collect();
    let Some(mut switch) = VSwitch::start(&all) else {
        return;
    };
    let bridge = switch.bridge(1);
    let installed = bridge.install(&rules).unwrap();
    assert_eq!(installed.rows, rules.rows().count());

    let reference = Reference::new(&of);
    let software = Switch::new(&rules);
    // Some of those that are drawn no port takes, or are against what is assumed.
    let some = |drawn: usize| -> Vec<_> {
        let fit = |frame: &[u8]| frame.len() >= 14 && expected(frame, assume);
        let all = packets(&of, 7, drawn).into_iter();
        all.filter(|(_, frame)| fit(frame)).collect()
    };
    let mut drawn = count() + count() / 4;
    let mut packets = some(drawn);
    while packets.len() < count() && drawn < 4 * count() {
        drawn *= 2;
        packets = some(drawn);
    }
    assert!(packets.len() >= count(), "{path}: {}", packets.len());
    let [mut decided, mut servers, mut leave] = [0; 3];
    let mut wanted: BTreeMap<u32, Vec<Vec<u8>>> = all.iter().map(|p| (*p, Vec::new())).collect();
    for port in 0..of.ports.len() as u8 {
        let mine: Vec<_> = packets.iter().filter(|p| p.0 == port).collect();
        for (n, (_, frame)) in mine.iter().enumerate() {
            let Some(Passed { became, .. }) = reference.pass(port, n as u64 * 1_000_000, frame)
            else {
                continue;
            };
            // Which packets servers have is what the switch in software says; all others have to be as the interpreter says.
            let fate = software.pass(frame, u32::from(port) + 1);
            let server =
                agrees(&became, &fate, port, assume).unwrap_or_else(|why| panic!("{path}: {why}"));
            decided += usize::from(!server);
            leave += usize::from(matches!(became, Became::Left(..)));
            servers += usize::from(server);
            let (to, bytes) = match (server, became, fate) {
                (true, ..) => (u32::from(port) + 11, frame.clone()),
                (false, Became::Left(device, bytes), Fate::Left(_, padded)) => {
                    let padded = if assume.padding { padded } else { bytes };
                    (u32::from(device) + 1, padded)
                }
                _ => continue,
            };
            wanted.get_mut(&to).unwrap().push(bytes);
        }
        let frames: Vec<&[u8]> = mine.iter().map(|p| p.1.as_slice()).collect();
        switch.receive(u32::from(port) + 1, &frames);
    }
    let total = wanted.values().map(Vec::len).sum();
    for (port, frames) in switch.sent(total) {
        let right = &wanted[&port];
        for (n, (sent, right)) in frames.iter().zip(right).enumerate() {
            assert_eq!(sent, right, "{path}: frame {n} of port {port}");
        }
        assert_eq!(frames.len(), right.len(), "{path}: frames of port {port}");
    }
    println!(
        "{path}: {} packets, the switch decided {decided}, servers {servers}; {leave} leave the chain",
        packets.len()
    );
    bridge.remove(&rules).unwrap();
    assert_eq!(bridge.have().unwrap().rows, 0);
}

#[test]
fn acl_251() {
    exercise("acl/acl-251.click", Assumptions::default());
}

#[test]
fn acl_713() {
    exercise("acl/acl-713.click", Assumptions::default());
}

#[test]
fn acl_8550() {
    if !its_turn("8,550 rules under packets", 1, 2) {
        return;
    }
    exercise("acl/acl-8550.click", Assumptions::default());
}

#[test]
fn routers() {
    exercise("routers/routers-10.click", assumed());
}

#[test]
fn firewall_and_router() {
    exercise("firewall-router/firewall-router.click", assumed());
}

fn slices(all: &[Vec<u8>]) -> Vec<&[u8]> {
    all.iter().map(Vec::as_slice).collect()
}

#[test]
fn servers_share_flows() {
    let of = chain("acl/acl-251.click");
    let mut request: Request = request(&of);
    request.servers.push(Server {
        weight: 3,
        ports: vec![21, 22],
    });
    let rules = compile(&of, &request).unwrap();
    let all = [1, 2, 11, 12, 21, 22];
    let Some(mut switch) = VSwitch::start(&all) else {
        return;
    };
    let bridge = switch.bridge(2);
    assert_eq!(bridge.install(&rules).unwrap().groups, 2);
    // A flow to each remote address that some rule lets out, and the answer from there.
    let software = Switch::new(&rules);
    // The switch hashes addresses that it can read.
    let headers = Assumptions {
        headers: true,
        ..Assumptions::default()
    };
    let open: Vec<Vec<u8>> = packets(&of, 3, 8_000)
        .into_iter()
        .filter(|(port, frame)| {
            *port == 0
                && expected(frame, headers)
                && matches!(software.pass(frame, 1), Fate::Group(..))
        })
        .map(|p| p.1)
        .collect();
    assert!(open.len() > 50);
    let answers: Vec<Vec<u8>> = open
        .iter()
        .map(|frame| {
            let mut answer = frame.clone();
            answer[26..30].copy_from_slice(&frame[30..34]);
            answer[30..34].copy_from_slice(&[192, 0, 2, 1]);
            answer
        })
        .collect();
    let both = open.into_iter().zip(answers);
    let (open, answers): (Vec<_>, Vec<_>) = both
        .filter(|(_, answer)| matches!(software.pass(answer, 2), Fate::Group(..)))
        .take(400)
        .unzip();
    switch.receive(1, &slices(&open));
    switch.receive(2, &slices(&answers));
    let sent: BTreeMap<_, _> = switch.sent(2 * open.len()).into_iter().collect();
    let remotes = |port: u32, at: usize| -> BTreeSet<Vec<u8>> {
        let frames = sent[&port].iter();
        frames.map(|f| f[at..at + 4].to_vec()).collect()
    };
    assert_eq!(sent.values().map(Vec::len).sum::<usize>(), 2 * open.len());
    assert_eq!(remotes(11, 30), remotes(12, 26));
    assert_eq!(remotes(21, 30), remotes(22, 26));
    assert!(remotes(11, 30).is_disjoint(&remotes(21, 30)));
    let shares = [remotes(11, 30).len(), remotes(21, 30).len()];
    println!("{shares:?}");
    assert!(shares[0] > 0 && shares[1] > shares[0], "{shares:?}");
    bridge.remove(&rules).unwrap();
    assert_eq!(bridge.have().unwrap().groups, 0);
}

#[test]
fn a_refused_rule_takes_all_out() {
    let of = chain("acl/acl-251.click");
    let rules = rules(&of, Assumptions::default());
    let Some(switch) = VSwitch::start(&[1, 2, 11, 12]) else {
        return;
    };
    // A table of 100 rows: the switch refuses the next one.
    let flows = rules
        .tables
        .iter()
        .find(|t| t.rows.len() > 100)
        .unwrap()
        .number;
    switch.vsctl(&[
        "--id=@t",
        "create",
        "Flow_Table",
        "flow_limit=100",
        "overflow_policy=refuse",
        "--",
        "set",
        "bridge",
        "br0",
        &format!("flow_tables:{flows}=@t"),
    ]);
    let bridge = switch.bridge(3);
    let why = bridge.install(&rules).unwrap_err().to_string();
    assert!(why.contains("TABLE_FULL"), "{why}");
    assert_eq!(bridge.have().unwrap().rows, 0);
}

#[test]
fn a_switch_that_restarts_has_nothing() {
    let of = chain("acl/acl-251.click");
    let rules = rules(&of, Assumptions::default());
    let Some(mut switch) = VSwitch::start(&[1, 2, 11, 12]) else {
        return;
    };
    let bridge = switch.bridge(4);
    let all = bridge.install(&rules).unwrap();
    switch.crash();
    assert!(bridge.have().is_err());
    switch.begin();
    let bridge = switch.bridge(4);
    let mut left = bridge.have();
    while left.is_err() {
        left = bridge.have();
    }
    assert_eq!(left.unwrap().rows, 0);
    assert_eq!(bridge.install(&rules).unwrap(), all);
}
