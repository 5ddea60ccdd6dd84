//! A function that runs on several machines, each with a part of the buckets.
//!
//! [`Described::read`] comes before the function is planned, since the cluster's secret is what the keys of the hash are drawn from on every
//! machine; [`Described::join`] behind it gives what a [`Job`](crate::Job) needs; [`Joined::begin`] takes and hands over buckets once workers serve.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use millrace_cluster::{Machine, Standing};
use millrace_dataplane::classes::Classes;
use millrace_dataplane::classes::away::Elsewhere;
use millrace_dataplane::moved::Contents;
use millrace_dataplane::port::Arrivals;
use millrace_peer::{Fixed, Hands, Link, Listener, Plan, Running, Security};

use crate::{Error, Function};

/// What is asked of a machine of a cluster.
pub struct Member {
    /// the file with the table of nodes
    pub file: PathBuf,
    /// this node
    pub name: String,
    /// where others reach it: packets (UDP) and buckets (TCP)
    pub peer: SocketAddr,
    /// how buckets are secured
    pub security: Security,
}

/// A cluster, before the function is planned.
pub struct Described {
    asked: Member,
    plan: Plan,
}

/// A machine of a cluster, with all that its job needs.
pub struct Joined {
    /// where each bucket is
    pub classes: Arc<Classes>,
    /// what goes with one
    pub contents: Contents,
    /// packets of other machines, to be taken once
    pub arrivals: Mutex<Option<Box<dyn Arrivals>>>,
    link: Arc<Link>,
    machine: Arc<dyn Machine>,
    room: u64,
    fixed: Fixed,
}

/// A machine that takes part, until this is dropped.
pub struct Begun {
    _listener: Listener,
    _fixed: Fixed,
}

impl Described {
    /// Reads the table.
    ///
    /// # Errors
    /// The file is no table, or has no such node at this address.
    pub fn read(asked: Member) -> Result<Self, Error> {
        let plan = Plan::read(&asked.file)
            .map_err(|e| Error::wrong(e).help("docs/peers.md shows such a file"))?;
        let Some((_, node)) = plan.named(&asked.name) else {
            let (file, name) = (asked.file.display(), &asked.name);
            return Err(Error::wrong(format!("{file}: there is no node {name}"))
                .help("name one of the file's with --node"));
        };
        if node.peer != asked.peer {
            let (file, name) = (asked.file.display(), &asked.name);
            return Err(Error::wrong(format!(
                "--peer {}: {file} says that others reach {name} at {}",
                asked.peer, node.peer
            ))
            .help("give the same address in both places"));
        }
        Ok(Self { asked, plan })
    }

    /// What the keys of the hash are drawn from.
    #[must_use]
    pub fn secret(&self) -> [u8; 32] {
        self.plan.secret.draw()
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
        let found = { placement.buckets.clone() }.zip(placement.table(workers as u32));
        let contents = Contents::of(placement, &function.module);
        let Some(((buckets, local), contents)) = found.zip(contents) else {
            let parts = placement.objects.iter().any(|o| o.held.shared());
            return match parts || placement.replicates() {
                true => Err(refused(
                    "its workers share state that packets write, which other machines do not see",
                )),
                false => Ok(None),
            };
        };
        let file = self.asked.file.display();
        let table = self.plan.table(buckets.count());
        let table = table.map_err(|e| Error::wrong(format!("{file}: {e}")))?;
        let me = self.plan.named(&self.asked.name).map(|(me, _)| me);
        let me = me
            .ok_or_else(|| Error::wrong(format!("{file}: there is no node {}", self.asked.name)))?;
        let own = |(worker, owner): (&u32, _)| (owner == &Some(me)).then_some(*worker);
        let places: Vec<Option<u32>> = local.iter().zip(&table.owners).map(own).collect();
        let standing = Arc::new(Standing::new(me, table.clone()));
        let peer = self.asked.peer;
        let open = |e: std::io::Error| {
            Error::wrong(format!("--peer {peer}: {e}"))
                .help("give an address of this machine that is free")
        };
        let link = Link::open(peer, &standing, &self.plan.secret, ports).map_err(open)?;
        let arrivals = link.arrivals().map_err(open)?;
        let elsewhere: Arc<dyn Elsewhere> = link.clone();
        let classes = Classes::of_machines(buckets, &places, workers, elsewhere);
        let object = function
            .object
            .as_deref()
            .and_then(|o| std::fs::read(o).ok());
        let object = object.unwrap_or_default();
        let steering = format!("{:?}", placement.steering);
        let parts = [name.as_bytes(), &object, steering.as_bytes()];
        let running = Running::new(&classes, &contents, &function.module, &parts, &link);
        let room = running.room();
        let machine: Arc<dyn Machine> = Arc::new(running);
        let fixed = Fixed::new(&standing, &machine, table);
        Ok(Some(Joined {
            classes,
            contents,
            arrivals: Mutex::new(Some(arrivals)),
            link,
            machine,
            room,
            fixed,
        }))
    }

    /// Takes and hands over buckets from now on; `say` hears of what cannot be done.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn begin(
        &self,
        joined: Joined,
        say: impl FnMut(&str) + Send + 'static,
    ) -> Result<Begun, Error> {
        let Member {
            file,
            name,
            peer,
            security,
        } = &self.asked;
        let open = |e: std::io::Error| {
            Error::wrong(format!("--peer {peer}: {e}"))
                .help("give an address of this machine that is free")
        };
        let secret = &self.plan.secret;
        let mut fixed = joined.fixed;
        let listener = Listener::begin(
            *peer,
            (name, secret, security),
            (joined.machine, joined.room),
            fixed.admits(),
            &joined.link,
        );
        let hands = Hands::new(name, secret, security, &joined.link);
        let begun = Begun {
            _listener: listener.map_err(open)?,
            _fixed: {
                fixed.watch(file, hands, say).map_err(open)?;
                fixed
            },
        };
        Ok(begun)
    }
}
