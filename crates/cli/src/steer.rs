//! `--steer [PORT:]OPTIONS`: who gets which packet, said by the user.

use millrace::place::{enough, plain};
use millrace_dataplane::port::{PortError, Query, RssOptions};
use millrace_steer::Steering;

use crate::failure::Failure;

/// A steering for each of these ports, if there are words; what names no port is for all that no other word names.
///
/// # Errors
/// A word makes no sense, names a port that there is not, or leaves one without.
pub fn steering(
    words: &[String],
    ports: &[String],
    cores: usize,
) -> Result<Option<Vec<Steering>>, Failure> {
    if words.is_empty() {
        return Ok(None);
    }
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
    all.collect::<Result<_, _>>().map(Some)
}

fn one(port: &str, options: &str, cores: usize) -> Result<Steering, Failure> {
    let wrong =
        |e: PortError| Failure::from(e).help("docs/parallel.md lists the options of --steer");
    let mut query = Query::parse("steer", &format!("{port}?{options}")).map_err(wrong)?;
    let given = RssOptions::take(&mut query).map_err(wrong)?;
    let inside = query.switch("inside", true).map_err(wrong)?;
    query
        .finish("`nic`, `key`, `fields`, `table`, `symmetric`, `inside`")
        .map_err(wrong)?;
    let nic = given.rss(&query, cores as u32).map_err(wrong)?;
    enough(given.model(), nic.table().len(), cores)?;
    Ok(plain(nic, inside))
}
