//! Hand-overs that come before the table under which they are made.

use millrace_cluster::store::{Member, Reply, Request, View};
use millrace_cluster::{Action, Agreement, Config, Event, Node, NodeId, Place, Table, Times};

const BUCKET: u32 = 1;

fn node(name: &str, at: u64) -> Node {
    Node {
        name: name.to_owned(),
        peer: ([10, 0, 0, 1], 4800).into(),
        life: at,
        lease: 40 + at as i64,
        alive: true,
        drained: false,
        copies: false,
    }
}

/// Nodes a, b and c in their first lives, and a bucket that shall go to c.
fn table(version: u64, owner: u16, given: u64) -> Table {
    let mut table = Table::empty(4);
    table.version = version;
    table.nodes = vec![node("a", 1), node("b", 2), node("c", 3)];
    table.owners = vec![Some(NodeId(0)), Some(NodeId(owner)), None, None];
    table.wanted = vec![Some(NodeId(0)), Some(NodeId(2)), None, None];
    table.given[BUCKET as usize] = given;
    table
}

/// The state machine of c, with answers to what it asks.
struct Driven {
    c: Agreement,
    now: u64,
    asked: Vec<(u64, Request)>,
}

impl Driven {
    fn step(&mut self, event: Event) -> Vec<Action> {
        self.now += 1000;
        let actions = self.c.step(event, self.now);
        for action in &actions {
            if let Action::Ask(id, request) = action {
                self.asked.push((*id, request.clone()));
            }
        }
        actions
    }

    fn answer(&mut self, is: impl Fn(&Request) -> bool, reply: Reply) -> Vec<Action> {
        let at = self.asked.iter().position(|(_, request)| is(request));
        let (id, _) = self.asked.remove(at.expect("it was asked"));
        self.step(Event::Reply(id, reply))
    }

    /// Reads a table.
    fn read(&mut self, table: &Table) -> Vec<Action> {
        self.step(Event::Changed);
        let members = table.nodes.iter().map(|n| Member {
            name: n.name.clone(),
            peer: n.peer,
            life: n.life,
            lease: n.lease,
            copies: false,
            stays: None,
        });
        let view = View {
            members: members.collect(),
            leader: Some(("a".to_owned(), 1)),
            table: Some((table.clone(), table.version)),
            ..View::default()
        };
        self.answer(|r| *r == Request::Read, Reply::Viewed(view))
    }
}

fn joined() -> Driven {
    let config = Config {
        name: "c".to_owned(),
        peer: ([10, 0, 0, 1], 4800).into(),
        buckets: 4,
        times: Times::of_lease(5),
        batch: 4,
        copies: false,
    };
    let mut driven = Driven {
        c: Agreement::new(config),
        now: 1,
        asked: Vec::new(),
    };
    driven.step(Event::Tick);
    let reply = Reply::Joined {
        lease: 43,
        life: 3,
        ttl: 5,
    };
    driven.answer(|r| matches!(r, Request::Join { .. }), reply);
    driven
}

fn forgets(actions: &[Action]) -> bool {
    actions.contains(&Action::Forget(BUCKET))
}

#[test]
fn a_bucket_that_comes_before_its_table_keeps_its_state() {
    let mut c = joined();
    c.read(&table(7, 0, 0));
    // a has died, b has taken the bucket over under version 8 and hands it on before c knows of that.
    c.c.may_take(BUCKET, 8, c.now).expect("it may come");
    c.c.has_taken(BUCKET, 8, c.now);
    assert!(!forgets(&c.read(&table(8, 1, 0))));
    let here = c.read(&table(9, 2, 8));
    assert!(!forgets(&here), "{here:?}");
    assert!(here.contains(&Action::Settle(BUCKET, Place::Here, None)));
}

#[test]
fn a_bucket_that_another_node_took_over_behind_its_hand_over_begins_as_the_table_says() {
    for versions in [&[8, 9][..], &[9]] {
        let mut c = joined();
        c.read(&table(7, 0, 0));
        c.c.has_taken(BUCKET, 8, c.now);
        // Handed over by b under version 8, which has died before the table said so: a goes on with it.
        let mut forgotten = false;
        for version in versions {
            let owner = u16::from(*version == 8);
            forgotten |= forgets(&c.read(&table(*version, owner, 0)));
        }
        forgotten |= forgets(&c.read(&table(10, 2, 0)));
        assert!(forgotten, "{versions:?}");
    }
}
