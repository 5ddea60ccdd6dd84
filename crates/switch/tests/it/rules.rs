//! Rules in the switch in software.

use crate::common::{assumed, chain, compared, packets, rules};
use millrace_switch::Assumptions;

fn chains(paths: &[&str], assume: Assumptions, count: usize) {
    for path in paths {
        let of = chain(path);
        let rules = rules(&of, assume);
        let tables: Vec<_> = rules
            .tables
            .iter()
            .map(|t| (t.name, t.rows.len()))
            .collect();
        let packets = packets(&of, 1, count);
        let (all, servers) = compared(&of, &rules, assume, &packets);
        println!(
            "{}: {tables:?}, bits {:?}, {servers} of {all} to servers",
            of.name, rules.bits
        );
        println!(
            "    {:?} {:?} {:?}",
            rules.extensions, rules.reasons, rules.unseen
        );
    }
}

#[test]
fn acl_251() {
    chains(&["acl/acl-251.click"], Assumptions::default(), 10_000);
}

#[test]
fn acl_713() {
    chains(&["acl/acl-713.click"], Assumptions::default(), 10_000);
}

#[test]
fn acl_8550() {
    chains(&["acl/acl-8550.click"], Assumptions::default(), 10_000);
}

#[test]
fn others() {
    let all = [
        "routers/routers-1.click",
        "routers/routers-10.click",
        "napts/napts-1.click",
        "firewall-router/firewall-router.click",
        "example/example.click",
        "napts/zones.click",
        "napts/napts-3.click",
    ];
    chains(&all, Assumptions::default(), 10_000);
    chains(&all, assumed(), 10_000);
}
