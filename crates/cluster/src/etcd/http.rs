//! Requests to etcd's JSON gateway, part of every etcd since 3.4: `POST /v3/…`, bytes in base64, 64-bit numbers as text.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::endpoint::{Endpoint, Tls};

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EtcdError {
    /// None of the servers could be asked: nothing was done.
    #[error("etcd at {host} cannot be reached: {why}")]
    Away {
        /// `HOST:PORT`
        host: String,
        /// of the system or of TLS
        why: String,
    },
    /// There was no answer, or one that says nothing about the outcome.
    #[error("etcd at {host} has not answered: {why}")]
    Silent {
        /// `HOST:PORT`
        host: String,
        /// the last error
        why: String,
    },
    /// It refused.
    #[error("etcd at {host} refuses: {why}")]
    Refused {
        /// `HOST:PORT`
        host: String,
        /// gRPC's number of the error
        code: i64,
        /// its own words
        why: String,
    },
    /// What stands in it is none of this program's.
    #[error("what stands in etcd at {key} cannot be read: {why}")]
    Content {
        /// the key
        key: String,
        /// what is wrong
        why: String,
    },
    /// A file of TLS.
    #[error("{file}: {why}")]
    File {
        /// its path
        file: String,
        /// what is wrong
        why: String,
    },
}

/// Between two tries of [`patiently`].
const PAUSE: Duration = Duration::from_millis(200);

impl EtcdError {
    /// Whether another try may be answered: the server asked stopped meanwhile, or no server of etcd leads for the moment. What was to be changed may be
    /// changed by now.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(self, Self::Silent { .. })
    }
}

/// Asks again for up to `patience` while there is no answer, as when servers of etcd elect one that leads. For requests that may be done twice.
///
/// # Errors
/// The last one.
pub fn patiently<T>(
    patience: Duration,
    mut ask: impl FnMut() -> Result<T, EtcdError>,
) -> Result<T, EtcdError> {
    let end = Instant::now() + patience;
    loop {
        match ask() {
            Err(error) if error.passes() && Instant::now() < end => thread::sleep(PAUSE),
            answer => return answer,
        }
    }
}

/// A table of 65536 buckets is some megabytes of JSON; nothing larger is read.
const LIMIT: u64 = 16 << 20;

/// A watch is renewed after this time: changes that are missed meanwhile are seen by the next read.
const WATCH: Duration = Duration::from_secs(20);

/// The gateways of an etcd. One is asked until it fails, then the next.
#[derive(Debug)]
pub struct Http {
    agent: Agent,
    watcher: Agent,
    urls: Vec<(String, String)>,
    at: AtomicUsize,
}

impl Http {
    /// Asks with `timeout` for each request. Connects to nothing yet.
    ///
    /// # Errors
    /// A file of TLS that cannot be read.
    pub fn new(endpoint: &Endpoint, tls: &Tls, timeout: Duration) -> Result<Self, EtcdError> {
        let tls = tls_config(tls)?;
        let config = || {
            Agent::config_builder()
                .http_status_as_error(false)
                // A proxy of the environment is for the web, not for this.
                .proxy(None)
                .max_redirects(0)
                .tls_config(tls.clone())
                .timeout_connect(Some(timeout))
        };
        let scheme = if endpoint.secure { "https" } else { "http" };
        let url = |host: &String| (host.clone(), format!("{scheme}://{host}/v3/"));
        Ok(Self {
            agent: config().timeout_global(Some(timeout)).build().into(),
            watcher: config().timeout_recv_body(Some(WATCH)).build().into(),
            urls: endpoint.hosts.iter().map(url).collect(),
            at: AtomicUsize::new(0),
        })
    }

    fn server(&self, next: usize) -> Option<&(String, String)> {
        let at = self.at.load(Ordering::Relaxed).wrapping_add(next);
        self.urls.get(at % self.urls.len().max(1))
    }

    /// Asks a server; another one where it could not be connected to, as then nothing was done.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub fn ask(&self, path: &str, body: &Value) -> Result<Value, EtcdError> {
        let mut last = None;
        for _ in 0..self.urls.len() {
            let Some((host, url)) = self.server(0) else {
                break;
            };
            let sent = self
                .agent
                .post(format!("{url}{path}"))
                .send(&body.to_string());
            let text = sent.and_then(|mut response| {
                let body = response.body_mut().with_config().limit(LIMIT);
                body.read_to_string()
            });
            let why = match text {
                Ok(text) => return self.answer(host, &text),
                Err(error) => error,
            };
            self.at.fetch_add(1, Ordering::Relaxed);
            let host = host.clone();
            let undone = unsent(&why);
            let why = why.to_string();
            if !undone {
                return Err(EtcdError::Silent { host, why });
            }
            last = Some(EtcdError::Away { host, why });
        }
        Err(last.unwrap_or(EtcdError::Away {
            host: String::new(),
            why: "there is no host".into(),
        }))
    }

    /// The server that is asked by now answers, and its answer lacks what an etcd's has.
    pub fn empty(&self) -> EtcdError {
        EtcdError::Silent {
            host: self
                .server(0)
                .map_or_else(String::new, |(host, _)| host.clone()),
            why: "its answer has no content; is it an etcd of version 3.4 or later?".into(),
        }
    }

    fn answer(&self, host: &str, text: &str) -> Result<Value, EtcdError> {
        let host = host.to_owned();
        let answer: Value = serde_json::from_str(text).map_err(|e| EtcdError::Silent {
            host: host.clone(),
            why: format!("it does not speak JSON ({e}); is it an etcd of version 3.4 or later?"),
        })?;
        let Some(error) = answer.get("error").filter(|e| !e.is_null()) else {
            return Ok(answer);
        };
        let of = |v: &Value, key: &str| v.get(key).cloned().unwrap_or_default();
        let code = of(&answer, "code").as_i64().unwrap_or(0);
        let why = of(&answer, "message");
        let why = why.as_str().or(error.as_str()).unwrap_or("no reason");
        let why = why.to_owned();
        // 4 deadline exceeded, 13 internal, 14 unavailable, 2 unknown: the request may have been done, and another server may be better off.
        if matches!(code, 0 | 2 | 4 | 13 | 14) {
            self.at.fetch_add(1, Ordering::Relaxed);
            return Err(EtcdError::Silent { host, why });
        }
        Err(EtcdError::Refused { host, code, why })
    }

    /// Calls `changed` for each change from `key` to `end`, and once as the watch is there, for what changed before. Returns after a bounded time, when
    /// `changed` says false or when the stream ends; whether there was one.
    pub fn watch(&self, key: &str, end: &str, changed: &mut dyn FnMut() -> bool) -> bool {
        let body = serde_json::json!({"create_request": {"key": key, "range_end": end}});
        let Some((_, url)) = self.server(0) else {
            return false;
        };
        let sent = self.watcher.post(format!("{url}watch"));
        let Ok(response) = sent.send(&body.to_string()) else {
            return false;
        };
        let reader = response.into_body().into_reader();
        let lines = BufReader::new(reader.take(LIMIT)).lines();
        let mut any = false;
        for line in lines {
            any |= line.is_ok();
            if line.is_err() || !changed() {
                break;
            }
        }
        any
    }
}

/// Whether a request surely did not reach a server.
fn unsent(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::Io(e) => matches!(
            e.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
        ),
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve)
        | ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed => true,
        _ => false,
    }
}

fn tls_config(tls: &Tls) -> Result<TlsConfig, EtcdError> {
    let read = |path: &std::path::Path| {
        let wrong = |why: String| EtcdError::File {
            file: path.display().to_string(),
            why,
        };
        std::fs::read(path).map_err(|e| wrong(e.to_string()))
    };
    let certificates = |path: &std::path::Path| -> Result<Vec<Certificate<'static>>, EtcdError> {
        let bytes = read(path)?;
        let all: Vec<_> = parse_pem(&bytes)
            .filter_map(|item| match item {
                Ok(ureq::tls::PemItem::Certificate(c)) => Some(c),
                _ => None,
            })
            .collect();
        if all.is_empty() {
            return Err(EtcdError::File {
                file: path.display().to_string(),
                why: "there is no certificate in it; PEM is meant".into(),
            });
        }
        Ok(all)
    };
    let mut config = TlsConfig::builder();
    if let Some(path) = &tls.authority {
        config = config.root_certs(RootCerts::Specific(Arc::new(certificates(path)?)));
    }
    if let Some((certificate, key)) = &tls.own {
        let chain = certificates(certificate)?;
        let private = PrivateKey::from_pem(&read(key)?).map_err(|e| EtcdError::File {
            file: key.display().to_string(),
            why: format!("there is no private key in it; PEM is meant ({e})"),
        })?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, private)));
    }
    Ok(config.build())
}
