//! Which runs of the store are meant.

use crate::database::sql::Value as Sql;
use narrows_model::Unit;

/// That a run is of a host.
const OF_HOST: &str = "(server = ? OR client = ? OR server_name = ?)";

/// A filter of stored runs; the default lets all pass. All parts must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub id: Option<String>,
    /// The client's name, the server as the user named it, or the server's own name.
    pub host: Option<String>,
    /// Another host of the run, named as `host` is: with both, runs between the two.
    pub peer: Option<String>,
    /// Runs that began at this time or later, microseconds since the Unix epoch.
    pub since_unix_us: Option<u64>,
    /// Runs that began before this time.
    pub before_unix_us: Option<u64>,
    pub tag: Option<String>,
    /// The verdict, or its first word, or its cause.
    pub verdict: Option<String>,
    /// The command, or its first word.
    pub command: Option<String>,
}

impl Filter {
    /// The condition on the table `runs`, and its values.
    pub(crate) fn sql(&self) -> (String, Vec<Sql>) {
        self.with_host(OF_HOST)
    }

    /// Conditions that let the same runs pass together, each with its values: one for each index of hosts, which has them in the
    /// order of time.
    pub(crate) fn by_index(&self) -> Vec<(String, Vec<Sql>)> {
        match self.host {
            Some(_) => ["server = ?", "client = ?", "server_name = ?"].map(|it| self.with_host(it)).into(),
            None => vec![self.sql()],
        }
    }

    fn with_host(&self, condition: &str) -> (String, Vec<Sql>) {
        let (mut parts, mut values) = (vec!["TRUE".to_owned()], Vec::new());
        let text = |word: &String| Sql::Text(word.clone());
        let time = |us: u64| Sql::Integer(i64::try_from(us).unwrap_or(i64::MAX));
        // LIKE and GLOB differ between databases; the lengths are of characters.
        let starts = |column: &str, with: &str| format!("substr({column}, 1, {}) = ?", with.chars().count());
        let ends = |column: &str, with: &str| {
            format!("substr({column}, length({column}) - {}) = ?", with.chars().count().saturating_sub(1))
        };
        if let Some(id) = &self.id {
            parts.push("id = ?".to_owned());
            values.push(text(id));
        }
        for (host, condition) in [(&self.host, condition), (&self.peer, OF_HOST)] {
            let Some(host) = host else { continue };
            parts.push(condition.to_owned());
            values.extend(condition.matches('?').map(|_| text(host)));
        }
        if let Some(since) = self.since_unix_us {
            parts.push("started_unix_us >= ?".to_owned());
            values.push(time(since));
        }
        if let Some(before) = self.before_unix_us {
            parts.push("started_unix_us < ?".to_owned());
            values.push(time(before));
        }
        if let Some(tag) = &self.tag {
            parts.push("number IN (SELECT run FROM tags WHERE tag = ?)".to_owned());
            values.push(text(tag));
        }
        if let Some(verdict) = &self.verdict {
            let [first, cause] = [format!("{verdict}: "), format!(": {verdict}")];
            parts.push(format!("(verdict = ? OR {} OR {})", starts("verdict", &first), ends("verdict", &cause)));
            values.extend([text(verdict), Sql::Text(first), Sql::Text(cause)]);
        }
        if let Some(command) = &self.command {
            let first = format!("{command} ");
            parts.push(format!("(command = ? OR {})", starts("command", &first)));
            values.extend([text(command), Sql::Text(first)]);
        }
        (parts.join(" AND "), values)
    }
}

/// A unit as its JSON says it.
pub(crate) fn unit_word(unit: Unit) -> String {
    match serde_json::to_value(unit) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "number".to_owned(),
    }
}

/// The unit of a word; of one that is not known, a plain number.
pub(crate) fn unit(word: &str) -> Unit {
    serde_json::from_value(word.into()).unwrap_or(Unit::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_between_two_hosts_are_found_by_the_index_of_one() {
        let filter = Filter { host: Some("a".to_owned()), peer: Some("b".to_owned()), ..Filter::default() };
        let (by_index, (all, values)) = (filter.by_index(), filter.sql());
        let names = ["a", "b", "b", "b"].map(|it| Sql::Text(it.to_owned()));
        assert_eq!(by_index[0], (format!("TRUE AND server = ? AND {OF_HOST}"), names.to_vec()));
        assert_eq!((by_index.len(), all, values.len()), (3, format!("TRUE AND {OF_HOST} AND {OF_HOST}"), 6));
    }
}
