//! Tables that are wrong or old, and what the leader and an operator make of them.

use millrace_cluster::store::{Foreign, Member, View};
use millrace_cluster::{
    FENCE, Node, NodeId, Standing, Status, Table, TableError, Verdict, drain, next,
};

fn node(name: &str, alive: bool) -> Node {
    Node {
        name: name.to_owned(),
        peer: ([10, 0, 0, 1], 4800).into(),
        life: 1,
        lease: 0,
        alive,
        drained: false,
        copies: false,
    }
}

fn table(nodes: &[(&str, bool)], owners: &[u16]) -> Table {
    let owners: Vec<_> = owners.iter().map(|o| Some(NodeId(*o))).collect();
    Table {
        version: 9,
        nodes: nodes.iter().map(|(n, alive)| node(n, *alive)).collect(),
        wanted: owners.clone(),
        given: vec![5; owners.len()],
        standbys: vec![None; owners.len()],
        inherited: vec![None; owners.len()],
        owners,
    }
}

fn view(table: Table, members: &[&str]) -> View {
    let member = |name: &&str| Member {
        name: (*name).to_owned(),
        peer: ([10, 0, 0, 1], 4800).into(),
        life: 1,
        lease: 0,
        copies: false,
        stays: None,
    };
    View {
        table: Some((table, 3)),
        members: members.iter().map(member).collect(),
        leader: None,
        foreign: Vec::new(),
        ended: Vec::new(),
    }
}

#[test]
fn dead_owners_are_replaced() {
    // The table names two dead nodes: one that it knows to be dead, one whose lease has ended.
    let old = table(&[("a", true), ("b", false), ("c", true)], &[0, 1, 2, 2]);
    let found = Status::of(&view(old.clone(), &["a"])).findings;
    let words: Vec<&str> = found.iter().map(|f| f.what.as_str()).collect();
    assert!(
        words.contains(&"node 'c' has no lease, and the table has it"),
        "{words:?}"
    );
    assert!(
        words.contains(&"1 buckets are owned by nodes that the table counts among the dead"),
        "{words:?}"
    );
    let change = next(&view(old.clone(), &["a"]), 4, true).expect("a change");
    assert_eq!(change.table.version, 10);
    assert_eq!(change.table.owners, vec![Some(NodeId(0)); 4]);
    // Who gets a dead node's bucket gets it without state.
    assert_eq!(change.table.given, vec![5, 0, 0, 0]);
    assert_eq!(change.guard.unclaimed, [("c".to_owned(), 0)]);
    assert_eq!(next(&view(change.table, &["a"]), 4, true), None);
    // Before takeovers are allowed, only what is known to be dead is replaced.
    let change = next(&view(old, &["a"]), 4, false).expect("a change");
    assert_eq!(change.table.owner(1), change.table.wanted[1]);
    assert_eq!(change.table.owner(2), Some(NodeId(2)));
    assert!(change.guard.unclaimed.is_empty());
}

#[test]
fn a_node_whose_key_somebody_has_written_over_keeps_its_buckets_while_it_has_a_lease() {
    // Listed by a version that wrote no leases: nobody knows whether it lives.
    let mut old = table(&[("a", true), ("b", true)], &[0, 0, 1, 1]);
    let mut seen = view(old.clone(), &["a"]);
    let foreign = |key: &str| Foreign {
        key: key.to_owned(),
        why: "it has no lease".to_owned(),
        at: 7,
    };
    seen.foreign = vec![foreign("members/b")];
    assert_eq!(next(&seen, 4, true), None);
    let found = Status::of(&seen).findings;
    assert!(
        found.iter().any(|f| f
            .what
            .contains("'members/b' is not of a node: it has no lease")),
        "{found:?}"
    );
    seen.foreign = vec![foreign("members/x")];
    let change = next(&seen, 4, true).expect("a change");
    assert_eq!(change.guard.unclaimed, [("b".to_owned(), 0)]);
    // With its lease: as long as that lasts it may act, whatever stands in its key, and nothing, and another life of it, are no difference.
    old.nodes[1].lease = 40;
    for (foreign, members) in [
        (vec![foreign("members/b")], vec!["a"]),
        (Vec::new(), vec!["a"]),
        (Vec::new(), vec!["a", "b"]),
    ] {
        let mut seen = view(old.clone(), &members);
        seen.foreign = foreign;
        if let Some(other) = seen.members.get_mut(1) {
            (other.life, other.lease) = (2, 41);
        }
        assert_eq!(next(&seen, 4, true), None, "{seen:?}");
        let status = Status::of(&seen);
        assert!(status.nodes[1].lease, "{status:?}");
        let mut found = status.findings.iter().map(|f| f.what.as_str());
        assert!(
            found.any(|f| f == "node 'b' has a lease, and its key in etcd is away or another's"),
            "{status:?}"
        );
        seen.ended = vec![40];
        let change = next(&seen, 4, true).expect("a change").table;
        match members.len() {
            1 => assert_eq!(change.owners, vec![Some(NodeId(0)); 4]),
            _ => assert_eq!((change.nodes[1].life, change.given[3]), (2, 0)),
        }
    }
    // It is declared dead only if in its place stands what was seen there.
    let mut seen = view(old, &["a"]);
    (seen.foreign, seen.ended) = (vec![foreign("members/b")], vec![40]);
    let change = next(&seen, 4, true).expect("a change");
    assert_eq!(change.guard.unclaimed, [("b".to_owned(), 7)]);
}

#[test]
fn a_node_that_was_listed_without_its_lease_is_dead_without_its_key() {
    let old = table(&[("a", true), ("b", true)], &[0, 0, 1, 1]);
    let change = next(&view(old, &["a"]), 4, true).expect("a change");
    assert_eq!(change.guard.unclaimed, [("b".to_owned(), 0)]);
}

#[test]
fn a_new_node_is_given_nothing_at_once() {
    let old = table(&[("a", true)], &[0, 0, 0, 0]);
    let table = next(&view(old, &["a", "b"]), 4, true)
        .expect("a change")
        .table;
    assert_eq!(table.owners, vec![Some(NodeId(0)); 4]);
    let to_b = table.wanted.iter().filter(|w| **w == Some(NodeId(1)));
    assert_eq!(to_b.count(), 2);
}

#[test]
fn drained_nodes_keep_what_nobody_can_take() {
    let two = table(&[("a", true), ("b", true)], &[0, 0, 1, 1]);
    assert_eq!(drain(&two, "a", false), Ok(None));
    let one = drain(&two, "a", true).expect("it can").expect("a change");
    assert!(one.nodes[0].drained && one.version == 10);
    let error = drain(&one, "b", true).expect_err("the last").to_string();
    assert!(error.contains("only living node"), "{error}");
    let error = drain(&one, "x", true).expect_err("unknown").to_string();
    assert!(error.ends_with("it has: a, b"), "{error}");
    let next = next(&view(one, &["a", "b"]), 4, true)
        .expect("a change")
        .table;
    assert_eq!(next.wanted, vec![Some(NodeId(1)); 4]);
}

#[test]
fn tables_that_are_none_are_refused() {
    let good = table(&[("a", true)], &[0, 0]);
    assert!(good.clone().checked().is_ok());
    let mut unknown = good.clone();
    unknown.wanted[1] = Some(NodeId(1));
    assert!(matches!(
        unknown.checked(),
        Err(TableError::Unknown { bucket: 1, .. })
    ));
    for (version, right) in [(u64::MAX, false), (i64::MAX as u64, false), (1 << 40, true)] {
        let table = Table {
            version,
            ..good.clone()
        };
        assert_eq!(table.checked().is_ok(), right, "{version}");
    }
    let twice = table(&[("a", true), ("b", true), ("a", false)], &[0, 0]);
    assert_eq!(twice.checked(), Err(TableError::Twice { name: "a".into() }));
    let mut short = good.clone();
    short.wanted.pop();
    assert!(matches!(short.checked(), Err(TableError::Buckets { .. })));
    // A table of a version without hand-overs.
    let mut old = serde_json::to_value(&good).expect("JSON");
    old.as_object_mut().expect("an object").remove("given");
    let old: Table = serde_json::from_value(old).expect("a table");
    assert_eq!(old.checked().expect("right").given, [0, 0]);
}

#[test]
fn a_stamp_fences_until_it_is_disproved() {
    let standing = Standing::new(NodeId(0), table(&[("a", true)], &[0, 0]));
    standing.set_until(100);
    assert_eq!(
        standing.judge(0, Some(9), 99),
        Verdict::Accept { version: 9 }
    );
    assert_eq!(standing.judge(0, None, 100), Verdict::Stopped);
    assert_eq!(standing.judge(0, Some(11), 99), Verdict::Stale);
    assert_eq!(standing.judge(1, None, 99), Verdict::Stale);
    assert!(standing.stale());
    // A read that began after the stamp found version 9: there is no version 11.
    standing.disprove(11, 9);
    assert_eq!(standing.judge(1, None, 99), Verdict::Accept { version: 9 });
    assert!(!standing.set_table(Table::empty(2)));
}

#[test]
fn a_machine_that_hears_of_a_newer_table_and_does_not_read_it_stops() {
    let standing = Standing::new(NodeId(0), table(&[("a", true)], &[0, 0]));
    standing.set_until(10 * FENCE);
    standing.hear(9, 5);
    assert!(standing.holds(5 + FENCE), "that is its own version");
    standing.hear(10, 100);
    // From the first time on, whatever comes later.
    standing.hear(11, 100 + FENCE / 2);
    assert!(standing.stale() && standing.holds(99 + FENCE) && !standing.holds(100 + FENCE));
    // A read that found no such table, as of a forged packet.
    let seen = standing.seen();
    standing.disprove(seen, 9);
    assert!(standing.holds(100 + FENCE));
    standing.hear(10, 2 * FENCE);
    let mut newer = table(&[("a", true)], &[0, 0]);
    newer.version = 10;
    standing.set_table(newer);
    assert!(standing.holds(9 * FENCE), "it has read it");
    // A table in a file: nobody takes a bucket from who has it.
    standing.set_until(u64::MAX);
    standing.hear(12, 3 * FENCE);
    assert!(standing.holds(9 * FENCE));
}
