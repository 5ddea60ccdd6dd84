//! A function that runs on several machines, each with a part of the buckets.
//!
//! [`Described::read`] comes before the function is planned, since the cluster's secret is what the keys of the hash are drawn from on every
//! machine; [`Described::join`] behind it gives what a [`Job`](crate::Job) needs; [`Described::begin`] takes and hands over buckets once workers serve.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millrace_cluster::etcd::{Endpoint, Etcd, Tls, patiently};
use millrace_cluster::{Config, Machine, NodeId, Standing, Table, Times};
use millrace_dataplane::account::Account;
use millrace_dataplane::classes::Classes;
use millrace_dataplane::classes::away::Elsewhere;
use millrace_dataplane::classes::successor::Successor;
use millrace_dataplane::copies::{Content, Copies};
use millrace_dataplane::moved::Contents;
use millrace_dataplane::port::Arrivals;
use millrace_peer::{
    Fixed, Hands, Keeping, Link, Listener, Plan, Running, Secret, Security, Standby,
};
use millrace_place::Placement;

use crate::{Error, Function};

mod identity;
mod joining;

pub use joining::Member as Joining;
use joining::With;

/// A lease of a node, s.
const LEASE: u64 = 5;
/// Buckets that one change of the table hands over.
const BATCH: usize = 16;
/// For a request to etcd.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a machine that starts waits for an etcd whose servers elect one that leads.
const ELECTION: Duration = Duration::from_secs(30);

/// Where machines agree on who has which bucket.
#[derive(Clone, Debug)]
pub enum Agreed {
    /// in a file that is the same on all
    File(PathBuf),
    /// in etcd
    Etcd(Endpoint, Tls),
}

/// What is asked of a machine of a cluster.
pub struct Member {
    /// where the table of nodes is
    pub agreed: Agreed,
    /// this node
    pub name: String,
    /// where others reach it: packets (UDP) and buckets (TCP)
    pub peer: SocketAddr,
    /// how buckets are secured
    pub security: Security,
    /// others keep copies of its buckets, and it keeps copies of theirs
    pub copies: bool,
}

/// A cluster, before the function is planned.
pub struct Described {
    asked: Member,
    source: Source,
    secret: Secret,
}

/// Where the table comes from.
enum Source {
    File(PathBuf, Plan),
    Etcd(Arc<Etcd>),
}

/// A machine of a cluster, with all that its job needs.
pub struct Joined {
    /// where each bucket is
    pub classes: Arc<Classes>,
    /// what goes with one
    pub contents: Contents,
    /// packets of other machines, to be taken once
    pub arrivals: Mutex<Option<Box<dyn Arrivals>>>,
    /// what workers tell changes of buckets, where others keep copies
    pub copies: Option<Arc<dyn Copies>>,
    standby: Option<Arc<Standby>>,
    link: Arc<Link>,
    machine: Arc<dyn Machine>,
    standing: Arc<Standing>,
    table: Table,
}

/// A machine that takes part, until this is dropped.
pub struct Begun {
    _keeping: Option<Keeping>,
    _listener: Listener,
    _table: Follows,
}

/// What follows the table.
enum Follows {
    File(#[expect(dead_code, reason = "it follows until it is dropped")] Fixed),
    Etcd(#[expect(dead_code, reason = "it leaves when it is dropped")] Joining),
}

/// All by which functions of two machines have to be equal beside their objects.
fn parts(
    function: &Function,
    placement: &Placement,
    object: &Path,
) -> Result<Vec<Vec<u8>>, String> {
    let steering = format!("{:?}", placement.steering);
    Ok(vec![
        function.name.clone().into_bytes(),
        identity::identity(object)?,
        function.entry.to_string().into_bytes(),
        steering.into_bytes(),
    ])
}

/// What goes with the buckets of a function that replaces another version of it; none where its state does not go with buckets.
#[must_use]
pub fn successor(function: &Function) -> Option<Arc<Successor>> {
    let placement = function.placement.as_deref()?;
    let shared = placement.objects.iter().any(|o| o.held.shared());
    if placement.stays.is_some() || placement.replicates() || shared {
        return None;
    }
    let contents = Contents::of(placement, &function.module)?;
    // Machines are compared by it.
    let object = function.object.as_deref()?;
    Some(Arc::new(Successor {
        module: function.module.clone(),
        contents,
        parts: parts(function, placement, object).ok()?,
    }))
}

impl Joined {
    /// Posts what the run has counted so far, which `millrace top --cluster` shows.
    #[must_use]
    pub fn posts(&self) -> Posts {
        Posts(self.link.clone())
    }
}

/// Where a machine of a cluster posts its counts.
pub struct Posts(Arc<Link>);

impl Posts {
    /// What the run has counted so far.
    pub fn post(&self, account: &Account) {
        self.0.post(account);
    }
}

impl Described {
    /// Reads the table, or asks for the secret.
    ///
    /// # Errors
    /// The file is no table, or has no such node at this address; etcd does not answer.
    pub fn read(asked: Member) -> Result<Self, Error> {
        let (source, secret) = match &asked.agreed {
            Agreed::File(file) => {
                let plan = Self::planned(file, &asked)?;
                let secret = plan.secret.clone();
                (Source::File(file.clone(), plan), secret)
            }
            Agreed::Etcd(endpoint, tls) => {
                let failed = |e: millrace_cluster::etcd::EtcdError| {
                    Error::wrong(format!("--cluster: {e}"))
                        .help("`millrace cluster check` looks at etcd and at the nodes")
                };
                let etcd = Etcd::new(endpoint, tls, PATIENCE).map_err(failed)?;
                let secret = patiently(ELECTION, || etcd.secret()).map_err(failed)?;
                let secret = Secret::new(secret);
                (Source::Etcd(Arc::new(etcd)), secret)
            }
        };
        Ok(Self {
            asked,
            source,
            secret,
        })
    }

    /// The table of a file, which has to name this node.
    fn planned(file: &Path, asked: &Member) -> Result<Plan, Error> {
        let plan = Plan::read(file)
            .map_err(|e| Error::wrong(e).help("docs/peers.md shows such a file"))?;
        let file = file.display();
        let Some((_, node)) = plan.named(&asked.name) else {
            let name = &asked.name;
            return Err(Error::wrong(format!("{file}: there is no node {name}"))
                .help("name one of the file's with --node"));
        };
        if node.peer != asked.peer {
            let name = &asked.name;
            return Err(Error::wrong(format!(
                "--peer {}: {file} says that others reach {name} at {}",
                asked.peer, node.peer
            ))
            .help("give the same address in both places"));
        }
        Ok(plan)
    }

    /// What the keys of the hash are drawn from.
    #[must_use]
    pub fn secret(&self) -> [u8; 32] {
        self.secret.draw()
    }

    /// Joins with a function that is made. None: any machine may have any packet, so that nothing goes between them.
    ///
    /// # Errors
    /// Its buckets cannot move, the table has others, or the address cannot be had.
    pub fn join(&self, function: &Function, ports: usize) -> Result<Option<Joined>, Error> {
        let name = &function.name;
        let placement = function.placement.as_deref();
        let refused = |why: &str| {
            Error::no(format!(
                "--cluster: buckets of {name} cannot be on several machines: {why}"
            ))
            .help("run it on one machine, or spread packets over machines by what its state is keyed by")
        };
        let placement = placement.ok_or_else(|| refused("it runs on one core"))?;
        if let Some(why) = &placement.stays {
            return Err(refused(why));
        }
        let workers = function.workers;
        let shared = "its workers share state that packets write, which other machines do not see";
        if placement.replicates() || placement.objects.iter().any(|o| o.held.shared()) {
            return Err(refused(shared));
        }
        let found = { placement.buckets.clone() }.zip(placement.table(workers as u32));
        let contents = Contents::of(placement, &function.module);
        let Some(((buckets, local), contents)) = found.zip(contents) else {
            return Ok(None);
        };
        // Machines are compared by it: without it one with other code would pass.
        let object = function.object.as_deref();
        let object = object.ok_or_else(|| refused("it has no object file: name one function"))?;
        let parts = parts(function, placement, object).map_err(|e| refused(&e))?;
        let (me, table) = match &self.source {
            Source::File(file, plan) => {
                let wrong = |what: String| Error::wrong(format!("{}: {what}", file.display()));
                let table = plan.table(buckets.count()).map_err(wrong)?;
                let me = plan.named(&self.asked.name).map(|(me, _)| me);
                let none = || wrong(format!("there is no node {}", self.asked.name));
                (me.ok_or_else(none)?, table)
            }
            // No bucket is here before etcd's table says so.
            Source::Etcd(_) => (NodeId(u16::MAX), Table::empty(buckets.count())),
        };
        let own = |(worker, owner): (&u32, _)| (owner == &Some(me)).then_some(*worker);
        let places: Vec<Option<u32>> = local.iter().zip(&table.owners).map(own).collect();
        let standing = Arc::new(Standing::new(me, table.clone()));
        let peer = self.asked.peer;
        let open = |e: std::io::Error| {
            Error::wrong(format!("--peer {peer}: {e}"))
                .help("give an address of this machine that is free")
        };
        let link = Link::open(peer, &standing, &self.secret, ports).map_err(open)?;
        let arrivals = link.arrivals().map_err(open)?;
        let elsewhere: Arc<dyn Elsewhere> = link.clone();
        let classes = Classes::of_machines(buckets, &places, workers, elsewhere);
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let content = Content {
            module: function.module.clone(),
            contents: contents.clone(),
            workers,
            buckets: classes.count() as u32,
        };
        if self.asked.copies
            && let Some(object) = content.unnoted()
        {
            return Err(Error::no(format!(
                "--standby 1: {name} is built so that it does not note what changes of {object}: no other machine can have a copy of it"
            ))
            .help("give its source rather than what was built of it, or run it without --standby"));
        }
        let mut running = Running::new(&classes, &contents, &function.module, &parts, &link);
        let standby = self.asked.copies.then(|| {
            Standby::new(
                (&self.asked.name, &self.secret, &self.asked.security),
                &standing,
                running.fingerprint(),
                content,
                &link,
            )
        });
        if let Some(standby) = &standby {
            running.keep(standby);
        }
        let copies = standby
            .clone()
            .map(|standby| -> Arc<dyn Copies> { standby });
        let machine: Arc<dyn Machine> = Arc::new(running);
        Ok(Some(Joined {
            classes,
            contents,
            arrivals: Mutex::new(Some(arrivals)),
            copies,
            standby,
            link,
            machine,
            standing,
            table,
        }))
    }

    /// Takes and hands over buckets from now on; `say` hears of what cannot be done, and `end` is called where this machine cannot go on.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn begin(
        &self,
        joined: &Joined,
        say: impl Fn(&str) + Send + Sync + 'static,
        end: impl Fn() + Send + 'static,
    ) -> Result<Begun, Error> {
        let Member {
            name,
            peer,
            security,
            ..
        } = &self.asked;
        let open = |e: std::io::Error| {
            Error::wrong(format!("--peer {peer}: {e}"))
                .help("give an address of this machine that is free")
        };
        let secret = &self.secret;
        let hands = Hands::new(name, secret, security, &joined.link);
        let listen = |admits| {
            Listener::begin(
                *peer,
                (name, secret, security),
                joined.machine.clone(),
                admits,
                (&joined.link, joined.standby.clone()),
            )
            .map_err(open)
        };
        match &self.source {
            Source::File(file, _) => {
                let mut fixed = Fixed::new(&joined.standing, &joined.machine, joined.table.clone());
                let listener = listen(fixed.admits())?;
                fixed.watch(file, hands, say).map_err(open)?;
                Ok(Begun {
                    _keeping: None,
                    _listener: listener,
                    _table: Follows::File(fixed),
                })
            }
            Source::Etcd(etcd) => {
                let times = Times::of_lease(LEASE);
                let say: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(say);
                say(&times.to_string());
                let keeping = joined.standby.as_ref().map(|standby| {
                    let said = say.clone();
                    standby.begin(move |words| said(words)).map_err(open)
                });
                let keeping = keeping.transpose()?;
                let member = Joining::begin(With {
                    config: Config {
                        name: name.clone(),
                        peer: *peer,
                        buckets: joined.machine.buckets(),
                        times,
                        batch: BATCH,
                        copies: joined.standby.is_some(),
                    },
                    store: etcd.clone(),
                    machine: joined.machine.clone(),
                    peers: Arc::new(hands),
                    standing: joined.standing.clone(),
                    say,
                    end: Box::new(end),
                });
                Ok(Begun {
                    _keeping: keeping,
                    _listener: listen(member.admits())?,
                    _table: Follows::Etcd(member),
                })
            }
        }
    }
}
