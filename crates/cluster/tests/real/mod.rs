//! The same against a real etcd; each test says that it is skipped where there is none.

mod nodes;
mod server;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millrace_cluster::etcd::{Endpoint, Etcd, Tls};
use millrace_cluster::store::{Guard, Member, Reply, Request};
use millrace_cluster::{Status, Store, Table, now, single_owner};

use self::nodes::{BUCKETS, Log, Said, Street, TTL, start, start_and_hear};
use self::server::{Servers, until};

fn checked(log: &Log) {
    let log = log.lock().expect("locked");
    match single_owner(&log, 0) {
        Ok(accepted) => println!("{accepted} packets accepted, one owner at each time"),
        Err(wrong) => panic!("{wrong}"),
    }
}

fn drain(etcd: &Etcd, name: &str, drained: bool) {
    until("the change is committed", || {
        let Ok(view) = etcd.view() else {
            return false;
        };
        let (mut table, at) = view.table.expect("a table");
        let id = table.named(name).expect("a node");
        table.nodes[usize::from(id.0)].drained = drained;
        table.version += 1;
        etcd.commit(at, &Guard::default(), &table) == Ok(true)
    });
}

#[test]
fn nodes_share_hand_over_and_take_over() {
    let Some(servers) = Servers::start(1, false) else {
        return;
    };
    let store = || Arc::new(servers.etcd("c1"));
    let (street, log) = (Street::default(), Log::default());
    let a = start("a", store(), &street, &log);
    until("a has all", || a.share() == BUCKETS as usize);
    let b = start("b", store(), &street, &log);
    let c = start("c", store(), &street, &log);
    until("each has its part", || {
        [&a, &b, &c].iter().all(|n| (5..=6).contains(&n.share()))
    });
    // No state was lost so far: the counts are what was accepted.
    let accepted = |log: &Log| log.lock().expect("locked").len() as u64;
    until("counts and acceptances agree", || {
        let before = accepted(&log);
        let all = [&a, &b, &c];
        let counted: u64 = all
            .iter()
            .flat_map(|n| n.machine.counted())
            .map(|(_, n)| n)
            .sum();
        before <= counted && counted <= accepted(&log)
    });
    c.crash();
    until("a and b have its buckets", || {
        a.share() == 8 && b.share() == 8
    });
    // A full node gets nothing; as it has room again, it gets its part.
    a.machine.full.store(true, Ordering::Relaxed);
    drain(&store(), "b", true);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(b.share(), 8);
    a.machine.full.store(false, Ordering::Relaxed);
    until("b is drained", || {
        b.share() == 0 && a.share() == BUCKETS as usize
    });
    let secret = store().secret().expect("a secret");
    assert_eq!(store().secret(), Ok(secret));
    drop(b);
    checked(&log);
}

#[test]
fn a_leader_of_three_etcds_dies() {
    let Some(mut servers) = Servers::start(3, false) else {
        return;
    };
    let (street, log) = (Street::default(), Log::default());
    let a = start("a", Arc::new(servers.etcd("c2")), &street, &log);
    let b = start("b", Arc::new(servers.etcd("c2")), &street, &log);
    until("they share", || a.share() == 8 && b.share() == 8);
    let leader = servers.leader();
    servers.kill(leader);
    let c = start("c", Arc::new(servers.etcd("c2")), &street, &log);
    until("each has its part", || {
        [&a, &b, &c].iter().all(|n| (5..=6).contains(&n.share()))
    });
    let lives: Vec<u64> = a
        .member
        .standing()
        .table()
        .nodes
        .iter()
        .map(|n| n.life)
        .collect();
    println!("lives {lives:?} after the leader of etcd died");
    checked(&log);
}

#[test]
fn etcd_is_away_as_a_whole() {
    let Some(mut servers) = Servers::start(1, false) else {
        return;
    };
    let (street, log) = (Street::default(), Log::default());
    let a = start("a", Arc::new(servers.etcd("c3")), &street, &log);
    let b = start("b", Arc::new(servers.etcd("c3")), &street, &log);
    until("they share", || a.share() == 8 && b.share() == 8);
    let version = a.member.standing().version();
    servers.kill(0);
    std::thread::sleep(Duration::from_secs(2 * TTL));
    // Well past both leases they go on, as each vouches for the other.
    assert!(a.member.standing().holds(now()) && b.member.standing().holds(now()));
    servers.run(0);
    servers.wait();
    std::thread::sleep(Duration::from_secs(TTL));
    assert_eq!(a.member.standing().version(), version);
    assert!(a.member.standing().holds(now()) && b.member.standing().holds(now()));
    // Without peers that vouch it ends.
    servers.kill(0);
    b.crash();
    until("a has stopped", || !a.member.standing().holds(now()));
    checked(&log);
}

/// Other programs write to the cluster's keys: what is not ours counts as nothing, and nodes go on with what was agreed on before.
#[test]
fn what_others_have_written_stops_no_node() {
    let Some(servers) = Servers::start(1, false) else {
        return;
    };
    let (street, log) = (Street::default(), Log::default());
    let store = || Arc::new(servers.etcd("c5"));
    // Nobody's node is there before the first of ours.
    let fake = r#"{"name":"ghost","peer":"10.0.0.1:1","life":1}"#;
    servers.put("c5", "members/ghost", fake.as_bytes());
    let a = start("a", store(), &street, &log);
    let b = start("b", store(), &street, &log);
    until("they share", || a.share() == 8 && b.share() == 8);
    for (key, value) in [
        ("members/x", &b"\xff\x00"[..]),
        ("members/y", b"{}"),
        ("members/z", fake.as_bytes()),
        ("members/", b""),
    ] {
        servers.put("c5", key, value);
    }
    let foreign = store().view().expect("a view").foreign;
    assert_eq!(foreign.len(), 5, "{foreign:?}");
    // Tables are changed meanwhile.
    drain(&store(), "b", true);
    until("b is drained", || b.share() == 0 && a.share() == 16);
    drain(&store(), "b", false);
    until("they share again", || a.share() == 8 && b.share() == 8);
    // A table that is none, or of another cluster: the one before it stays, and packets are served under it.
    let right = serde_json::to_vec(&store().view().expect("a view").table.expect("a table").0);
    let right = right.expect("JSON");
    let mut other = Table::empty(4);
    other.version = 1 << 30;
    let other = serde_json::to_vec(&other).expect("JSON");
    for wrong in [&b"no JSON"[..], b"[]", &[0xff; 9], &other] {
        let version = a.member.standing().version();
        servers.put("c5", "table", wrong);
        std::thread::sleep(Duration::from_secs(2 * TTL));
        for node in [&a, &b] {
            assert!(node.member.standing().holds(now()), "{wrong:?}");
            assert_eq!(node.member.standing().version(), version);
            assert_eq!(node.member.failure(), None);
        }
    }
    servers.put("c5", "table", &right);
    drain(&store(), "b", true);
    until("b is drained once more", || {
        b.share() == 0 && a.share() == 16
    });
    // A leader's key without a lease is nobody's: a node puts its own there.
    servers.put("c5", "leader", b"[\"a\", 1]");
    until("a node leads", || {
        let view = store().view().expect("a view");
        view.leader.is_some_and(|(_, life)| life > 1)
    });
    drain(&store(), "b", false);
    until("they share once more", || a.share() == 8 && b.share() == 8);
    // What is no secret is not taken for one.
    servers.put("c6", "secret", b"short");
    let error = servers
        .etcd("c6")
        .secret()
        .expect_err("no secret")
        .to_string();
    assert!(
        error.contains("/millrace/c6/secret") && error.contains("32 bytes"),
        "{error}"
    );
    checked(&log);
}

/// An etcd without room prolongs leases and answers reads, and takes no table: packets are served, nothing moves, and the leader says why.
#[test]
fn an_etcd_without_room_is_said_to_have_none() {
    let Some(mut servers) = Servers::start(1, false) else {
        return;
    };
    let (street, log, said) = (Street::default(), Log::default(), Said::default());
    let store = Arc::new(servers.etcd("c8"));
    let a = start_and_hear("a", store.clone(), &street, &log, &said);
    let b = start_and_hear("b", store, &street, &log, &said);
    until("they share", || a.share() == 8 && b.share() == 8);
    servers.fill(200_000);
    let heard = || {
        let said = said.lock().expect("locked");
        let full =
            |words: &&String| words.contains("table cannot be changed") && words.contains("space");
        said.iter().filter(full).count()
    };
    // What the leader would change: one has died.
    b.crash();
    until("the leader says why it changes nothing", || heard() > 0);
    std::thread::sleep(Duration::from_secs(TTL));
    assert_eq!(heard(), 1, "once");
    assert!(a.member.standing().holds(now()));
    assert_eq!(a.share(), 8);
    checked(&log);
}

/// A node's right to act is its lease: what other programs do to its key takes nothing from a living node, and keeps nothing for a dead one.
#[test]
fn a_node_is_its_lease_and_not_its_key() {
    let Some(servers) = Servers::start(1, false) else {
        return;
    };
    let (street, log) = (Street::default(), Log::default());
    let store = || Arc::new(servers.etcd("c7"));
    let view = || store().view().expect("a view");
    let of_b = || {
        let members = view().members;
        members.into_iter().find(|m| m.name == "b")
    };
    let a = start("a", store(), &street, &log);
    let b = start("b", store(), &street, &log);
    until("they share", || a.share() == 8 && b.share() == 8);
    // Restored by a tool, twice: b puts it again, under its lease and in its life, and the table stays as it is.
    let version = a.member.standing().version();
    let member = of_b().expect("b");
    let restored = serde_json::to_vec(&member).expect("JSON");
    for _ in 0..2 {
        servers.put("c7", "members/b", &restored);
        let key = |f: &millrace_cluster::store::Foreign| f.key == "members/b";
        until("it stands under its lease", || {
            let view = view();
            !view.foreign.iter().any(key) && view.members.contains(&member)
        });
    }
    std::thread::sleep(Duration::from_secs(2 * TTL));
    assert_eq!(a.member.standing().version(), version);
    assert!(b.member.standing().holds(now()));
    // Of a dead node: its lease ends though its key stands.
    b.crash();
    servers.put("c7", "members/b", &restored);
    let status = Status::of(&view());
    assert!(status.nodes[1].lease, "{status:?}");
    until("a has all", || a.share() == BUCKETS as usize);
    assert!(view().hides("b"));
    // It joins though that key stands there.
    let b = start("b", store(), &street, &log);
    until("they share again", || a.share() == 8 && b.share() == 8);
    // Removed while it runs: it has lost its place, and takes another one. Its lease outlives its key.
    let member = of_b().expect("b");
    servers.remove("c7", "members/b");
    until("it has another life", || {
        of_b().is_some_and(|m| m.life > member.life && m.lease != member.lease)
    });
    until("that is in the table", || {
        let (table, _) = view().table.expect("a table");
        table.nodes[1].life > member.life && table.nodes[1].alive
    });
    until("they share once more", || a.share() == 8 && b.share() == 8);
    // Under a lease that there is not, nothing is put.
    let request = Request::Renew {
        member: Member {
            lease: 12345,
            ..of_b().expect("b")
        },
    };
    assert_eq!(store().perform(&request), Reply::Gone);
    checked(&log);
}

#[test]
fn both_sides_show_certificates() {
    let Some(servers) = Servers::start(1, true) else {
        return;
    };
    let (street, log) = (Street::default(), Log::default());
    let a = start("a", Arc::new(servers.etcd("c4")), &street, &log);
    let b = start("b", Arc::new(servers.etcd("c4")), &street, &log);
    until("they share", || a.share() == 8 && b.share() == 8);
    let bare = Tls {
        own: None,
        ..servers.tls.clone().unwrap_or_default()
    };
    let endpoint = servers.endpoint("c4");
    let timeout = Duration::from_secs(2);
    let error = |tls: &Tls| {
        let etcd = Etcd::new(&endpoint, tls, timeout).expect("files");
        etcd.view().expect_err("refused").to_string()
    };
    println!("without a certificate: {}", error(&bare));
    println!("unknown authority: {}", error(&Tls::default()));
    checked(&log);
}

#[test]
fn endpoints_are_read() {
    let one: Endpoint = "etcd://h:2379/lab".parse().expect("right");
    assert_eq!(
        (one.hosts.len(), one.name.as_str(), one.secure),
        (1, "lab", false)
    );
    let three: Endpoint = "etcds://a:1,[::1]:2,c:3/x.y-z_1".parse().expect("right");
    assert_eq!((three.hosts.len(), three.secure), (3, true));
    for wrong in [
        "",
        "etcd://",
        "etcd://h/x",
        "etcd://h:99999/x",
        "etcd://h:1",
        "etcd://h:1/",
        "etcd://h:1/a/b",
        "http://h:1/x",
        "etcd://:1/x",
        "etcd://h:1,/x",
        "etcd://h:1/x y",
        "etcd://u@h:1/x",
    ] {
        let error = wrong.parse::<Endpoint>().expect_err(wrong).to_string();
        assert!(error.contains("etcd://HOST:2379/NAME"), "{error}");
    }
}
