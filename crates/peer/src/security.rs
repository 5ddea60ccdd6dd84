//! Who is at the other end of a stream: TLS 1.3 with certificates on both sides, or nothing where a word asks for that.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_cluster::Refused;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use crate::message::refused;
use crate::{STEP, WHOLE};

/// How streams between nodes are secured.
#[derive(Clone)]
pub enum Security {
    /// by the cluster's secret alone: whoever sees packets sees state
    Plain,
    /// by TLS 1.3, with a certificate on both sides
    Tls {
        /// as the receiver
        server: Arc<ServerConfig>,
        /// as the sender
        client: Arc<ClientConfig>,
    },
}

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", file.display())]
pub struct SecurityError {
    /// the file
    pub file: PathBuf,
    /// what is wrong with it
    pub what: String,
}

impl Security {
    /// TLS with the certificates in a folder: `ca.pem`, which signed those of all nodes, `cert.pem`, this node's, with its name as a DNS name, and
    /// `key.pem`.
    ///
    /// # Errors
    /// One of them cannot be read, or they do not belong together.
    pub fn tls(folder: &Path) -> Result<Self, SecurityError> {
        let file = |name: &str| folder.join(name);
        let wrong = |name: &str, what: String| SecurityError {
            file: file(name),
            what,
        };
        let certificates = |name: &str| -> Result<Vec<CertificateDer<'static>>, SecurityError> {
            let all = CertificateDer::pem_file_iter(file(name));
            let all = all.and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let all = all.map_err(|e| wrong(name, e.to_string()))?;
            match all.is_empty() {
                true => Err(wrong(name, "there is no certificate in it".to_owned())),
                false => Ok(all),
            }
        };
        let mut roots = RootCertStore::empty();
        for root in certificates("ca.pem")? {
            let added = roots.add(root);
            added.map_err(|e| wrong("ca.pem", e.to_string()))?;
        }
        let (roots, own) = (Arc::new(roots), certificates("cert.pem")?);
        let key = PrivateKeyDer::from_pem_file(file("key.pem"));
        let key = key.map_err(|e| wrong("key.pem", e.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = |e: rustls::Error| wrong("cert.pem", e.to_string());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        let verifier = verifier
            .build()
            .map_err(|e| wrong("ca.pem", e.to_string()))?;
        let versions = &[&rustls::version::TLS13];
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(tls)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(own.clone(), key.clone_key())
            .map_err(tls)?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(tls)?
            .with_root_certificates(roots)
            .with_client_auth_cert(own, key)
            .map_err(tls)?;
        Ok(Self::Tls {
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }

    /// The sender's end of a stream to the node of this name.
    pub(crate) fn connect(&self, stream: TcpStream, name: &str) -> Result<Stream, Refused> {
        let bounded = Bounded::new(stream)?;
        let Self::Tls { client, .. } = self else {
            return Ok(Stream::Plain(bounded));
        };
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| refused(format!("`{name}` cannot stand in a certificate")))?;
        let end = ClientConnection::new(client.clone(), name);
        let end = end.map_err(|e| refused(format!("no TLS: {e}")))?;
        Ok(Stream::Sender(Box::new(StreamOwned::new(end, bounded))))
    }

    /// The receiver's end of a stream.
    pub(crate) fn accept(&self, stream: TcpStream) -> Result<Stream, Refused> {
        let bounded = Bounded::new(stream)?;
        let Self::Tls { server, .. } = self else {
            return Ok(Stream::Plain(bounded));
        };
        let end = ServerConnection::new(server.clone());
        let end = end.map_err(|e| refused(format!("no TLS: {e}")))?;
        let mut stream = StreamOwned::new(end, bounded);
        // Nothing is said to who has no certificate.
        let done = stream.conn.complete_io(&mut stream.sock);
        done.map_err(|e| refused(format!("no TLS: {e}")))?;
        Ok(Stream::Receiver(Box::new(stream)))
    }
}

/// A stream, at either end.
pub(crate) enum Stream {
    Plain(Bounded),
    Sender(Box<StreamOwned<ClientConnection, Bounded>>),
    Receiver(Box<StreamOwned<ServerConnection, Bounded>>),
}

impl Stream {
    /// It lasts as long again: what it is for goes on.
    pub fn renew(&mut self) {
        let bounded = match self {
            Self::Plain(stream) => stream,
            Self::Sender(stream) => &mut stream.sock,
            Self::Receiver(stream) => &mut stream.sock,
        };
        bounded.until = Instant::now() + WHOLE;
    }

    /// It lasts so long at most from now on, and once more where a byte comes just before the end.
    pub fn hurry(&mut self, within: Duration) -> Result<(), Refused> {
        let bounded = match self {
            Self::Plain(stream) => stream,
            Self::Sender(stream) => &mut stream.sock,
            Self::Receiver(stream) => &mut stream.sock,
        };
        bounded.until = Instant::now() + within;
        let stream = &bounded.stream;
        let set = stream
            .set_read_timeout(Some(within))
            .and_then(|()| stream.set_write_timeout(Some(within)));
        set.map_err(|e| refused(format!("the stream cannot be bounded: {e}")))
    }

    /// Whether the sender's certificate is of this name; without TLS anybody's is.
    pub fn is_of(&self, name: &str) -> bool {
        let Self::Receiver(stream) = self else {
            return true;
        };
        let own = stream.conn.peer_certificates().and_then(<[_]>::first);
        let parsed = own.and_then(|own| ParsedCertificate::try_from(own).ok());
        let name = ServerName::try_from(name).ok();
        parsed
            .zip(name)
            .is_some_and(|(own, name)| verify_server_name(&own, &name).is_ok())
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Sender(stream) => stream.read(into),
            Self::Receiver(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Sender(stream) => stream.write(bytes),
            Self::Receiver(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Sender(stream) => stream.flush(),
            Self::Receiver(stream) => stream.flush(),
        }
    }
}

/// A stream of TCP that ends [`WHOLE`] after it began, or was renewed, however slowly something comes.
pub(crate) struct Bounded {
    stream: TcpStream,
    until: Instant,
}

impl Bounded {
    fn new(stream: TcpStream) -> Result<Self, Refused> {
        let set = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(STEP)))
            .and_then(|()| stream.set_write_timeout(Some(STEP)))
            .and_then(|()| stream.set_nodelay(true));
        set.map_err(|e| refused(format!("the stream cannot be bounded: {e}")))?;
        Ok(Self {
            stream,
            until: Instant::now() + WHOLE,
        })
    }

    fn late(&self) -> std::io::Result<()> {
        match Instant::now() < self.until {
            true => Ok(()),
            false => Err(std::io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Read for Bounded {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.late()?;
        self.stream.read(into)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.late()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}
