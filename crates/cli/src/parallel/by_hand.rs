//! `--steer [PORT:]OPTIONS`: who gets which packet, said by the user.

use std::collections::BTreeMap;

use millrace_check::Checked;
use millrace_dataplane::port::{Query, RssOptions};
use millrace_emit::lock;
use millrace_model::Model;
use millrace_object::program::{ObjectId, Program};
use millrace_place::Treatment;
use millrace_plan::Plan;
use millrace_steer::Steering;

use super::{enough, planned, written};
use crate::failure::{Failure, NO};
use crate::wiring::port_failure;

/// A steering for each of these ports; what names no port is for all that no other word names.
///
/// # Errors
/// A word makes no sense, names a port that there is not, or leaves one without.
pub fn steering(
    words: &[String],
    ports: &[String],
    cores: usize,
) -> Result<Vec<Steering>, Failure> {
    // A program that names no ports knows them by number.
    let numbers: Vec<String> = (0..words.len().max(2)).map(|n| n.to_string()).collect();
    let names = if ports.is_empty() { &numbers } else { ports };
    let mut own: Vec<Option<Steering>> = vec![None; names.len()];
    let mut others = None;
    for word in words {
        // Keys may have colons in them, so a name stands before the first `=`.
        let head = word.split('=').next().unwrap_or_default();
        match head.split_once(':') {
            None => others = Some(one("*", word, cores)?),
            Some((name, _)) => {
                let port = names.iter().position(|n| n.eq_ignore_ascii_case(name));
                let place = port.and_then(|port| own.get_mut(port)).ok_or_else(|| {
                    Failure::wrong(format!("--steer {word}: the function has no port `{name}`"))
                        .help(format!("its ports are {}", names.join(", ")))
                })?;
                let options = word.get(name.len() + 1..).unwrap_or_default();
                *place = Some(one(name, options, cores)?);
            }
        }
    }
    let all = own.into_iter().zip(names).map(|(own, name)| {
        own.or_else(|| others.clone()).ok_or_else(|| {
            Failure::wrong(format!("--steer: nothing is said of port `{name}`")).help(format!(
                "give --steer {name}:OPTIONS, or one --steer without a port"
            ))
        })
    });
    all.collect()
}

/// Whether a program writes objects of which the paths decide what is done with them by hand: those that every core has
/// one of, and those whose elements packets may only add to. A table is divided.
pub fn asks(model: &Model, program: &Program) -> bool {
    let mut objects = (0..).map(ObjectId).zip(&program.objects);
    objects.any(|(id, object)| {
        let shown = object.kind.is_global() || object.kind.has_all() || object.kind.per_cpu;
        shown && written(model, id)
    })
}

/// Treatment of each object where the user sets the steering: what asks for nothing is as the plan says,
/// but for numbers that handlers without a packet add to, which are one for all workers; all else that packets write is
/// divided, on the user's word. What packets find in a per-CPU map no steering brings together.
///
/// # Errors
/// A per-CPU map keeps the function on one core.
pub fn treatments(
    model: &Model,
    program: &Program,
    checked: &Checked,
    plan: &Plan,
    cores: usize,
) -> Result<Vec<Treatment>, Failure> {
    let mut added = lock::repeated(program, checked);
    added.retain(|id| {
        plan.treatment(*id) == Treatment::Merge && lock::obstacle(program, checked, *id).is_none()
    });
    let shared = lock::together(program, checked, &added);
    let objects = (0..).map(ObjectId).zip(&program.objects);
    objects
        .map(|(id, object)| match plan.treatment(id) {
            _ if shared.contains(&id) && lock::obstacle(program, checked, id).is_none() => {
                Ok(Treatment::Lock)
            }
            found @ (Treatment::Merge | Treatment::Spread) => Ok(found),
            _ if !written(model, id) => Ok(Treatment::Spread),
            Treatment::Alone if object.kind.per_cpu => {
                let said = plan.objects.iter().find(|o| o.id == id);
                let said = said.map_or_else(|| object.name.clone(), planned::reason);
                Err(Failure {
                    code: NO,
                    ..Failure::wrong(format!(
                        "--cores {cores}: {} runs on one core: {said}",
                        program.name
                    ))
                    .help("use --cores 1: --steer divides what packets find by a key, and not what each CPU has")
                })
            }
            _ => Ok(Treatment::Shard),
        })
        .collect()
}

fn one(port: &str, options: &str, cores: usize) -> Result<Steering, Failure> {
    let wrong = |e| port_failure(e).help("docs/parallel.md lists the options of --steer");
    let mut query = Query::parse("steer", &format!("{port}?{options}")).map_err(wrong)?;
    let given = RssOptions::take(&mut query).map_err(wrong)?;
    let inside = query.switch("inside", true).map_err(wrong)?;
    query
        .finish("`nic`, `key`, `fields`, `table`, `symmetric`, `inside`")
        .map_err(wrong)?;
    let nic = given.rss(&query, cores as u32).map_err(wrong)?;
    enough(given.model(), nic.table().len(), cores)?;
    Ok(Steering {
        nic,
        software: BTreeMap::new(),
        inside,
        echoes: false,
        odd: None,
    })
}
