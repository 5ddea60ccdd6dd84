//! Where a cluster is agreed on: `etcd://HOST:PORT[,HOST:PORT…]/NAME`, with `etcds:` for TLS.

use std::path::PathBuf;
use std::str::FromStr;

/// Files of TLS, PEM.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tls {
    /// who signed the servers' certificates; the system's authorities do not count
    pub authority: Option<PathBuf>,
    /// this node's certificate and key: servers that ask for one get it
    pub own: Option<(PathBuf, PathBuf)>,
}

/// An etcd and a cluster's name in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// `HOST:PORT` of each server, at least one
    pub hosts: Vec<String>,
    /// the cluster's name: keys are below `/millrace/NAME/`
    pub name: String,
    /// over TLS
    pub secure: bool,
}

/// An endpoint that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{text}' is no cluster: {why}; etcd://HOST:2379/NAME is meant, with etcds: for TLS and several HOST:PORT with commas"
)]
pub struct EndpointError {
    /// what was given
    pub text: String,
    /// what is wrong with it
    pub why: &'static str,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let wrong = |why| EndpointError {
            text: text.to_owned(),
            why,
        };
        let (secure, rest) = match text.split_once("://") {
            Some(("etcd", rest)) => (false, rest),
            Some(("etcds", rest)) => (true, rest),
            _ => return Err(wrong("it does not begin with etcd:// or etcds://")),
        };
        let (hosts, name) = rest.split_once('/').ok_or(wrong("it has no name"))?;
        let letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > 63 || !name.chars().all(letter) {
            return Err(wrong(
                "its name is not 1 to 63 letters, digits, dots, dashes and underscores",
            ));
        }
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        let right = |host: &String| {
            let port = host
                .rsplit_once(':')
                .map(|(h, port)| (h, port.parse::<u16>()));
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-[]:".contains(c);
            matches!(port, Some((h, Ok(_))) if !h.is_empty()) && host.chars().all(plain)
        };
        if !hosts.iter().all(right) {
            return Err(wrong("a host is not HOST:PORT"));
        }
        Ok(Self {
            hosts,
            name: name.to_owned(),
            secure,
        })
    }
}
