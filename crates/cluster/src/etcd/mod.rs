//! The store in etcd, through its JSON gateway.

mod endpoint;
mod http;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub use self::endpoint::{Endpoint, EndpointError, Tls};
use self::http::Http;
pub use self::http::{EtcdError, patiently};
use crate::membership::Store;
use crate::store::{Foreign, Guard, Member, Reply, Request, View};
use crate::table::{Node, Table};

/// gRPC's number of "not found".
const NOT_FOUND: i64 = 5;

/// Leases that are asked about for one view at most: as many nodes as one commit declares dead.
const MAX_ASKED: usize = 100;

/// A cluster's keys in an etcd.
#[derive(Debug)]
pub struct Etcd {
    http: Http,
    prefix: String,
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A 64-bit number, which the gateway writes as text and leaves out where it is 0.
fn number(of: &Value, key: &str) -> i64 {
    let text = of.get(key).and_then(Value::as_str);
    text.and_then(|t| t.parse().ok()).unwrap_or(0)
}

/// Whether a key was made at a revision; 0: whether there is none.
fn created(key: &str, at: u64) -> Value {
    json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": at.to_string()})
}

/// Whether a key was written last at a revision; 0: whether there is none.
fn changed(key: &str, at: u64) -> Value {
    json!({"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": at.to_string()})
}

fn revision(of: &Value) -> u64 {
    let header = of.get("header").map(|h| number(h, "revision"));
    header.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

fn unsigned(of: &Value, key: &str) -> u64 {
    u64::try_from(number(of, key)).unwrap_or(0)
}

impl Etcd {
    /// Of an endpoint; each request takes `timeout` at most. Connects to nothing yet.
    ///
    /// # Errors
    /// A file of TLS that cannot be read.
    pub fn new(endpoint: &Endpoint, tls: &Tls, timeout: Duration) -> Result<Self, EtcdError> {
        Ok(Self {
            http: Http::new(endpoint, tls, timeout)?,
            prefix: format!("/millrace/{}/", endpoint.name),
        })
    }

    fn key(&self, of: &str) -> String {
        base64(format!("{}{of}", self.prefix))
    }

    fn member_key(&self, name: &str) -> String {
        self.key(&format!("members/{name}"))
    }

    /// Everything of the cluster, at one revision, linearizably; then, of living nodes that no key is under the lease of, whether that has ended.
    ///
    /// # Errors
    /// No answer, or content that is none.
    pub fn view(&self) -> Result<View, EtcdError> {
        let range = |key: &str, end: Option<&str>| json!({"request_range": {"key": self.key(key), "range_end": end.map(|e| self.key(e))}});
        let ranges = [
            range("table", None),
            range("leader", None),
            // The character behind '/' ends the range.
            range("members/", Some("members0")),
        ];
        let many = ranges.len();
        let answer = self.http.ask("kv/txn", &json!({ "success": ranges }))?;
        let responses = answer.get("responses").and_then(Value::as_array);
        let ranges = responses.into_iter().flatten();
        let ranges: Vec<&Value> = ranges.filter_map(|r| r.get("response_range")).collect();
        if ranges.len() != many {
            return Err(self.http.empty());
        }
        let kvs = |at: usize| -> Vec<Value> {
            let kvs = ranges.get(at).and_then(|r| r.get("kvs"));
            kvs.and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let mut foreign = Vec::new();
        let mut strange = |key: String, kv: &Value, why: EtcdError| {
            let why = match why {
                EtcdError::Content { why, .. } => why,
                other => other.to_string(),
            };
            let at = unsigned(kv, "mod_revision");
            foreign.push(Foreign { key, why, at });
        };
        let table = match kvs(0).first() {
            Some(kv) => {
                let table: Table = self.content("table", kv)?;
                let table = table.checked().map_err(|e| self.unread("table", &e))?;
                Some((table, unsigned(kv, "mod_revision")))
            }
            None => None,
        };
        let leader = kvs(1).first().and_then(|kv| {
            let known = self.leased("leader", kv);
            known.map(Some).unwrap_or_else(|why| {
                strange("leader".to_owned(), kv, why);
                (number(kv, "lease") != 0).then(|| (String::new(), 0))
            })
        });
        let mut members = Vec::new();
        for kv in kvs(2) {
            let key = self.below(&kv);
            match self.member(&key, &kv) {
                Ok(member) => members.push(member),
                Err(why) => strange(key, &kv, why),
            }
        }
        let nodes = table.iter().flat_map(|(t, _)| &t.nodes);
        let ended = self.ended(nodes, &members)?;
        Ok(View {
            table,
            leader,
            members,
            foreign,
            ended,
        })
    }

    /// Leases of living nodes of a table that have ended, of those that no member has. A lease that has ended does not come back.
    fn ended<'a>(
        &self,
        nodes: impl Iterator<Item = &'a Node>,
        members: &[Member],
    ) -> Result<Vec<i64>, EtcdError> {
        let listed = |lease: i64| members.iter().any(|m| m.lease == lease);
        let mut ended = Vec::new();
        let asked = nodes.filter(|n| n.alive && n.lease != 0 && !listed(n.lease));
        for node in asked.take(MAX_ASKED) {
            let body = json!({"ID": node.lease.to_string()});
            let answer = self.http.ask("lease/timetolive", &body)?;
            if answer.get("header").is_none() {
                return Err(self.http.empty());
            }
            // -1 of a lease that is gone. One that has run out and is not revoked yet may be below 0, too: another leader of etcd prolongs it.
            if number(&answer, "TTL") < 0 && number(&answer, "grantedTTL") == 0 {
                ended.push(node.lease);
            }
        }
        Ok(ended)
    }

    /// A key, below the cluster's name.
    fn below(&self, kv: &Value) -> String {
        let key = kv.get("key").and_then(Value::as_str).unwrap_or_default();
        let key = STANDARD.decode(key).unwrap_or_default();
        let key = String::from_utf8_lossy(&key);
        key.strip_prefix(&self.prefix).unwrap_or(&key).to_owned()
    }

    /// The node that a key is of.
    fn member(&self, key: &str, kv: &Value) -> Result<Member, EtcdError> {
        let mut member: Member = self.leased(key, kv)?;
        if key.strip_prefix("members/") != Some(&member.name) {
            let name = &member.name;
            return Err(self.unread(key, &format!("it is of node '{name}'")));
        }
        member.life = unsigned(kv, "create_revision");
        member.lease = number(kv, "lease");
        Ok(member)
    }

    /// What stands in a key that goes with a lease.
    fn leased<T: serde::de::DeserializeOwned>(
        &self,
        key: &str,
        kv: &Value,
    ) -> Result<T, EtcdError> {
        if number(kv, "lease") == 0 {
            return Err(self.unread(key, &"it has no lease, so that it would stay for ever"));
        }
        self.content(key, kv)
    }

    fn unread(&self, key: &str, why: &dyn std::fmt::Display) -> EtcdError {
        EtcdError::Content {
            key: format!("{}{key}", self.prefix),
            why: why.to_string(),
        }
    }

    fn content<T: serde::de::DeserializeOwned>(
        &self,
        key: &str,
        kv: &Value,
    ) -> Result<T, EtcdError> {
        let text = kv.get("value").and_then(Value::as_str).unwrap_or_default();
        let bytes = STANDARD.decode(text).map_err(|e| self.unread(key, &e))?;
        serde_json::from_slice(&bytes).map_err(|e| self.unread(key, &e))
    }

    /// Does `put`s if all of `compare` holds; whether, and the revision.
    fn transact(&self, compare: &[Value], put: &[Value]) -> Result<(bool, u64), EtcdError> {
        let body = json!({"compare": compare, "success": put});
        let answer = self.http.ask("kv/txn", &body)?;
        let done = answer.get("succeeded").and_then(Value::as_bool);
        Ok((done.unwrap_or(false), revision(&answer)))
    }

    /// Writes a table in place of the one of revision `at`; whether that was still there.
    ///
    /// # Errors
    /// No answer: it may have been done.
    pub fn commit(&self, at: u64, guard: &Guard, table: &Table) -> Result<bool, EtcdError> {
        self.write(at, guard, table).map(|(done, _)| done)
    }

    fn write(&self, at: u64, guard: &Guard, table: &Table) -> Result<(bool, u64), EtcdError> {
        let mut compare = vec![changed(&self.key("table"), at)];
        let present = guard.present.iter();
        compare.extend(present.map(|(name, life)| created(&self.member_key(name), *life)));
        let unclaimed = guard.unclaimed.iter();
        compare.extend(unclaimed.map(|(name, at)| changed(&self.member_key(name), *at)));
        if let Some(leader) = &guard.leader {
            let value = base64(json!(leader).to_string());
            compare.push(json!({"key": self.key("leader"), "target": "VALUE", "result": "EQUAL", "value": value}));
        }
        let value = serde_json::to_vec(table).map_err(|e| self.unread("table", &e))?;
        self.transact(&compare, &[self.put("table", &value, None)])
    }

    fn put(&self, key: &str, value: &[u8], lease: Option<i64>) -> Value {
        let lease = lease.map(|l| l.to_string());
        json!({"request_put": {"key": self.key(key), "value": base64(value), "lease": lease}})
    }

    fn absent(&self, key: &str) -> Value {
        created(&self.key(key), 0)
    }

    fn join(&self, member: &Member, ttl: u64) -> Result<Reply, EtcdError> {
        let granted = self
            .http
            .ask("lease/grant", &json!({"TTL": ttl.to_string()}))?;
        let (lease, ttl) = (number(&granted, "ID"), unsigned(&granted, "TTL"));
        if lease == 0 || ttl == 0 {
            // A key without a lease would stay for ever.
            return Err(self.http.empty());
        }
        let key = format!("members/{}", member.name);
        let value = json!(member).to_string();
        let put = self.put(&key, value.as_bytes(), Some(lease));
        let mut joined = self.transact(&[self.absent(&key)], std::slice::from_ref(&put));
        if let Ok((false, _)) = joined {
            // Not written over: the revision at which it was made would be no new life.
            joined = self.clear(&key).and_then(|cleared| {
                let again = || self.transact(&[self.absent(&key)], &[put]);
                if cleared { again() } else { Ok((false, 0)) }
            });
        }
        if let Ok((true, life)) = joined {
            return Ok(Reply::Joined { lease, life, ttl });
        }
        // Where the outcome is unknown, the key goes with its lease.
        let ended = self.end(lease);
        joined?;
        ended?;
        Ok(Reply::Taken)
    }

    /// Removes a key that has no lease; whether it did.
    fn clear(&self, key: &str) -> Result<bool, EtcdError> {
        let answer = self.http.ask("kv/range", &json!({"key": self.key(key)}))?;
        let kv = answer.get("kvs").and_then(|k| k.get(0));
        let Some(kv) = kv.filter(|kv| number(kv, "lease") == 0) else {
            return Ok(false);
        };
        let same = changed(&self.key(key), unsigned(kv, "mod_revision"));
        let remove = json!({"request_delete_range": {"key": self.key(key)}});
        self.transact(&[same], &[remove]).map(|(done, _)| done)
    }

    fn renew(&self, member: &Member) -> Result<Reply, EtcdError> {
        let key = format!("members/{}", member.name);
        let value = json!(member).to_string();
        let put = self.put(&key, value.as_bytes(), Some(member.lease));
        let same = created(&self.key(&key), member.life);
        Ok(match self.transact(&[same], &[put]) {
            Ok((true, revision)) => Reply::Committed(revision),
            Ok((false, _))
            | Err(EtcdError::Refused {
                code: NOT_FOUND, ..
            }) => Reply::Gone,
            Err(error) => return Err(error),
        })
    }

    /// Writes to a node's key why it can neither give nor take buckets any more. Whether it stands there; it goes with the node's lease.
    ///
    /// # Errors
    /// No answer: it may have been done.
    pub fn stays(&self, name: &str, why: &str) -> Result<bool, EtcdError> {
        let view = self.view()?;
        let Some(member) = view.members.iter().find(|m| m.name == name) else {
            return Ok(false);
        };
        if member.stays.as_deref() == Some(why) {
            return Ok(true);
        }
        let told = Member {
            stays: Some(why.to_owned()),
            ..member.clone()
        };
        let key = self.member_key(name);
        let there = created(&key, member.life);
        let value = base64(json!(told).to_string());
        let put = json!({"request_put": {"key": key, "value": value, "ignore_lease": true}});
        self.transact(&[there], &[put]).map(|(done, _)| done)
    }

    fn keep(&self, lease: i64) -> Result<Reply, EtcdError> {
        let body = json!({"ID": lease.to_string()});
        let answer = self.http.ask("lease/keepalive", &body)?;
        let result = answer.get("result").cloned().unwrap_or_default();
        // A lease that is gone has no time to live.
        Ok(match unsigned(&result, "TTL") {
            0 if result.get("header").is_some() => Reply::Gone,
            0 => Reply::Failed("etcd's answer to a keepalive has no content".into()),
            ttl => Reply::Kept { ttl },
        })
    }

    fn end(&self, lease: i64) -> Result<(), EtcdError> {
        let body = json!({"ID": lease.to_string()});
        match self.http.ask("lease/revoke", &body) {
            Err(EtcdError::Refused {
                code: NOT_FOUND, ..
            })
            | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The cluster's secret, 32 bytes, made at random by whoever asks first. It is in etcd, so who may read etcd may speak as a node.
    ///
    /// # Errors
    /// No answer, content that is none, or a system without randomness.
    pub fn secret(&self) -> Result<[u8; 32], EtcdError> {
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|e| self.unread("secret", &e))?;
        self.transact(
            &[self.absent("secret")],
            &[self.put("secret", &fresh, None)],
        )?;
        let known = self.known_secret()?;
        known.ok_or_else(|| self.unread("secret", &"it was removed at once"))
    }

    /// The cluster's secret; none where no node has made one yet.
    ///
    /// # Errors
    /// No answer, or content that is none.
    pub fn known_secret(&self) -> Result<Option<[u8; 32]>, EtcdError> {
        let body = json!({"key": self.key("secret")});
        let answer = self.http.ask("kv/range", &body)?;
        let kv = answer.get("kvs").and_then(|k| k.get(0));
        let Some(kv) = kv else { return Ok(None) };
        let text = kv.get("value").and_then(Value::as_str);
        let bytes = STANDARD.decode(text.unwrap_or_default());
        let bytes = bytes.map_err(|e| self.unread("secret", &e))?;
        <[u8; 32]>::try_from(bytes.as_slice())
            .map(Some)
            .map_err(|_| self.unread("secret", &"it is not of 32 bytes"))
    }

    fn lead(&self, lease: i64, me: &(String, u64)) -> Result<Reply, EtcdError> {
        let value = json!(me).to_string();
        let put = self.put("leader", value.as_bytes(), Some(lease));
        // One without a lease would stay for ever, and one that is not there has none either.
        let nobody =
            json!({"key": self.key("leader"), "target": "LEASE", "result": "EQUAL", "lease": "0"});
        self.transact(&[nobody], &[put])?;
        Ok(Reply::Led)
    }
}

impl Store for Etcd {
    fn perform(&self, request: &Request) -> Reply {
        let done = match request {
            Request::Join { member, ttl } => self.join(member, *ttl),
            Request::Renew { member } => self.renew(member),
            Request::Keep { lease } => self.keep(*lease),
            Request::Read => self.view().map(Reply::Viewed),
            Request::Lead { lease, me } => self.lead(*lease, me),
            Request::Commit { at, guard, table } => match self.write(*at, guard, table) {
                Ok((true, revision)) => Ok(Reply::Committed(revision)),
                Ok((false, _)) => Ok(Reply::Conflict),
                // Nothing was sent.
                Err(EtcdError::Away { .. }) => Ok(Reply::Conflict),
                // As a whole: it has no room, or does not let this node write.
                Err(error @ EtcdError::Refused { .. }) => Ok(Reply::Refused(error.to_string())),
                Err(error) => Err(error),
            },
            Request::Leave { lease } => self.end(*lease).map(|()| Reply::Gone),
        };
        done.unwrap_or_else(|error| Reply::Failed(error.to_string()))
    }

    fn watch(&self, changed: &mut dyn FnMut() -> bool) -> bool {
        // The character behind '/' ends the range.
        let end = self.prefix.trim_end_matches('/').to_owned() + "0";
        let prefix = base64(&self.prefix);
        self.http.watch(&prefix, &base64(end), changed)
    }
}
