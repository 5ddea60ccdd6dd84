//! Where the packets come from: captures, or a specification.

use std::str::FromStr;

use millrace::Ports;
use millrace_dataplane::signal;
use millrace_traffic::generate::Spec;
use millrace_verify::{First, Generated, Trace};

use super::Verify;
use crate::failure::Failure;

/// The traffic that the words ask for.
///
/// # Errors
/// A specification that makes no sense; captures are opened when they are read, and now once to see that they
/// can be.
pub fn open<'a>(
    of: &Verify,
    ports: &'a Ports,
    names: &'a [String],
) -> Result<Box<dyn Trace + 'a>, Failure> {
    let most = of.packets.unwrap_or(u64::MAX);
    if let Some(words) = &of.generate {
        let spec = spec(words)?;
        spec.validate()
            .map_err(|e| Failure::wrong(e).help("see millrace trace gen --help"))?;
        return Ok(Box::new(First(Generated(spec), most)));
    }
    Ok(Box::new(First(ports.trace(names, signal::flag())?, most)))
}

/// `NAME=VALUE` of `--generate`; what is not named is as in `millrace trace gen`.
fn spec(words: &[String]) -> Result<Spec, Failure> {
    let mut spec = Spec::default();
    for word in words.iter().filter(|w| !w.is_empty()) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let done = match name {
            "packets" => put(&mut spec.packets, value),
            "flows" => put(&mut spec.flows, value),
            "zipf" => put(&mut spec.zipf, value),
            "churn" => put(&mut spec.churn, value),
            "rate" => put(&mut spec.rate, value),
            "size" => put(&mut spec.size, value),
            // Commas separate the settings here.
            "mix" => put(&mut spec.mix, &value.replace('+', ",")),
            "ipv6" => put(&mut spec.ipv6, value),
            "lan" => put(&mut spec.lan, value),
            "wan" => put(&mut spec.wan, value),
            "lan6" => put(&mut spec.lan6, value),
            "wan6" => put(&mut spec.wan6, value),
            "seed" => put(&mut spec.seed, value),
            _ => None,
        };
        done.ok_or_else(|| {
            Failure::wrong(format!("--generate {word}: not a setting")).help(
                "write NAME=VALUE with packets, flows, zipf, churn, rate, size, mix (tcp:8+udp:2), ipv6, lan, \
                 wan, lan6, wan6 or seed",
            )
        })?;
    }
    Ok(spec)
}

fn put<T: FromStr>(place: &mut T, value: &str) -> Option<()> {
    *place = value.parse().ok()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_generator() {
        let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let made = spec(&words(
            "packets=7,churn=3.5,mix=tcp:1+icmp:2,lan=10.0.0.0/24",
        ))
        .unwrap();
        assert_eq!((made.packets, made.churn, made.mix.icmp), (7, 3.5, 2.0));
        assert_eq!(spec(&words("")).unwrap(), Spec::default());
        for wrong in ["packets", "packets=x", "flow=1", "mix=quic"] {
            assert!(spec(&words(wrong)).unwrap_err().what.contains(wrong));
        }
    }
}
