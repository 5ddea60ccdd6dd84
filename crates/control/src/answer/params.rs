//! Parameters: what can be set, and setting it.

use millrace_dataplane::Instance;
use serde_json::{Value, json};

use super::{Result, Session, refused, state};
use crate::protocol::Request;
use crate::trouble::Trouble;

impl Session {
    /// Parameters are read at each packet, and nothing was proved of their values: so they can change.
    pub(super) fn set(&self, request: &Request) -> Result<Value> {
        let malformed = || {
            Trouble::new("malformed", "not a setting")
                .help("write NAME=VALUE, as `run --set` takes it")
        };
        let setting = request.setting.as_deref().ok_or_else(malformed)?;
        let (name, text) = setting.split_once('=').ok_or_else(malformed)?;
        let (target, own) = self.context.elements.param(name)?;
        let (id, params) = (target.id, &target.exposed.params);
        let param = params.iter().find(|p| p.name == own).ok_or_else(|| {
            let names: Vec<_> = params.iter().map(|p| p.name.as_str()).collect();
            let help = match names.as_slice() {
                [] => "the function has no parameters".into(),
                names => format!("the parameters are {}", names.join(", ")),
            };
            Trouble::new(
                "no-such-parameter",
                format!("there is no parameter `{name}`"),
            )
            .help(help)
        })?;
        let value = param.encoded(text).map_err(|e| {
            Trouble::new("malformed", e).help("`millrace ctl params` lists types and values")
        })?;
        let (object, at) = (param.object.0, param.offset as usize);
        let key = vec![0; target.exposed.info(object).map_or(0, |o| o.key_bytes)];
        let written = value.clone();
        let set = move |instance: &mut Instance, now: u64| {
            let section = instance.get(object, &key, now).map_err(refused)?;
            let mut section = section.unwrap_or_default();
            let place = section.get_mut(at..at.saturating_add(value.len()));
            let place = place.ok_or_else(|| {
                Trouble::new("refused", "the parameter is not in this module")
                    .help("build it again")
            })?;
            let before = place.to_vec();
            place.copy_from_slice(&value);
            instance.set(object, &key, &section, now).map_err(refused)?;
            Ok(before)
        };
        let before = match self.replicas_of(&target.exposed)? {
            // Rows are made with the setting, so the sequencer has it, too.
            Some(group) => self.together(&group, true, set)?,
            None => self.each(move |desk| {
                let now = desk.now;
                set(state(desk, id)?, now)
            })?,
        };
        let before = before.into_iter().collect::<Result<Vec<_>>>()?;
        let before = before.first().map(|b| param.written(param.decoded(b)));
        Ok(json!({
            "name": target.named(own),
            "before": before,
            "now": param.written(param.decoded(&written)),
        }))
    }

    pub(super) fn params(&self) -> Result<Value> {
        let mut all = Vec::new();
        for target in self.context.elements.functions() {
            let params = target.exposed.params.clone();
            let sizes = target.exposed.objects.iter().map(|(o, _)| o.key_bytes);
            let (sizes, id): (Vec<_>, u64) = (sizes.collect(), target.id);
            let shown = self.first(move |desk| {
                let now = desk.now;
                let instance = state(desk, id)?;
                let shown = params.iter().map(|p| {
                    let key = vec![0; sizes.get(p.object.0).copied().unwrap_or(0)];
                    let section = instance.get(p.object.0, &key, now).ok().flatten();
                    let at = p.offset as usize;
                    let value = section
                        .as_deref()
                        .and_then(|s| s.get(at..at.saturating_add(p.bytes as usize)));
                    (
                        p.name.clone(),
                        p.type_name.clone(),
                        value.map(|v| p.written(p.decoded(v))),
                    )
                });
                Ok(shown.collect::<Vec<_>>())
            })??;
            all.extend(shown.into_iter().map(|(name, ty, value)| {
                json!({ "name": target.named(&name), "type": ty, "value": value })
            }));
        }
        Ok(json!({ "params": all }))
    }
}
