//! What is read, refused and said.

use super::*;

/// 2023-11-14T22:13:20Z.
const SINCE_MS: u64 = 1_700_000_000_000;

fn incident(element: &str) -> Incident {
    let says = "carries 40 % of what it should".to_owned();
    Incident {
        number: 7,
        element: element.to_owned(),
        says,
        since_ms: SINCE_MS,
        acknowledged: None,
        verdict: None,
        reported: true,
    }
}

fn both(element: &str) -> [Message; 2] {
    [Message::Began(incident(element)), Message::Over { incident: incident(element), after_ms: 90_000 }]
}

fn read(text: &str) -> Result<Target, String> {
    toml::from_str::<Alert>(text).map_err(|error| error.to_string()).and_then(|alert| alert.target())
}

#[test]
fn each_kind_of_target_is_read() {
    let place = |tls, authority: &str, host: &str, port, path: &str| {
        let [authority, host, path] = [authority, host, path].map(str::to_owned);
        Place { tls, authority, host, port, path }
    };
    let hook = place(true, "hooks.example.org", "hooks.example.org", 443, "/a?key=b");
    assert_eq!(read("webhook = 'https://hooks.example.org/a?key=b'"), Ok(Target::Webhook(hook, Form::Json)));
    let hook = place(false, "[::1]:8080", "::1", 8080, "/");
    assert_eq!(read("webhook = 'http://[::1]:8080'\nform = 'chat'"), Ok(Target::Webhook(hook, Form::Chat)));
    let manager = place(false, "am:9093", "am", 9093, "/x/api/v2/alerts");
    for url in ["http://am:9093/x", "http://am:9093/x/", "http://am:9093/x/api/v2/alerts"] {
        assert_eq!(read(&format!("alertmanager = '{url}'")), Ok(Target::Alertmanager(manager.clone())));
    }
    let login = Login { user: "me".to_owned(), password_file: "/etc/p".into() };
    for (tls, url, port, login, more) in [
        (false, "smtp://relay", 25, None, ""),
        (true, "smtps://relay", 465, None, ""),
        (false, "smtp://relay", 25, Some(login), "user = 'me'\npassword-file = '/etc/p'"),
    ] {
        let target = read(&format!("smtp = '{url}'\nfrom = 'n@b'\nto = ['a@b']\n{more}")).expect("a mail");
        let server = place(tls, "relay", "relay", port, "/");
        assert_eq!(target.words(), "mail server relay");
        assert_eq!(target, Target::Mail { server, from: "n@b".to_owned(), to: vec!["a@b".to_owned()], login });
    }
}

#[test]
fn what_makes_no_sense_is_named_without_secrets() {
    for (text, says) in [
        ("", "none of `webhook`"),
        ("form = 'chat'", "none of `webhook`"),
        ("to = ['a@b']", "none of `webhook`"),
        ("webhook = 'http://a'\nalertmanager = 'http://b'", "only one of `webhook`"),
        ("color = 1", "unknown field"),
        ("webhook = 'http://a'\nform = 'poem'", "unknown variant"),
        ("alertmanager = 'http://a'\nform = 'chat'", "`form` goes with `webhook`"),
        ("webhook = 'http://a'\nto = ['a@b']", "go with `smtp`"),
        ("webhook = 'ftp://secret'", "begins with https:// or http://"),
        ("webhook = 'secret'", "begins with https:// or http://"),
        ("webhook = 'http://a/secret\\r\\n'", "without blanks"),
        ("webhook = \"http://a/secret\\r\\nx: y\"", "without blanks"),
        ("webhook = 'http://me:secret@a/'", "no user"),
        ("webhook = 'http://a:0/secret'", "needs a host"),
        ("webhook = 'http:///secret'", "needs a host"),
        ("webhook = 'http://[secret]/'", "needs a host"),
        ("alertmanager = 'http://a/?secret'", "no query"),
        ("smtp = 'http://secret'", "begins with smtp://"),
        ("smtp = 'smtp://a/secret'", "smtp://HOST:PORT"),
        ("webhook = 'http://a'\nuser = 'me'", "go with `smtp`"),
        ("alertmanager = 'http://a'\npassword-file = '/secret'", "go with `smtp`"),
        ("smtp = 'smtps://me:secret@a'", "no user"),
        ("smtp = 'smtps://a'\nuser = 'me'\npassword = 'secret'", "to a file"),
        ("smtp = 'smtps://a'\nfrom = 'a@b'\nto = ['a@b']\nuser = 'me'", "in `password-file`"),
        ("smtp = 'smtps://a'\nfrom = 'a@b'\nto = ['a@b']\nuser = ''", "`user` has 1 to"),
        ("smtp = 'smtps://a'\nfrom = 'a@b'\nto = ['a@b']\nuser = 'me'\npassword-file = 'secret'", "absolute path"),
        ("smtp = 'smtps://a'\nfrom = 'a@b'\nto = ['a@b']\npassword-file = '/secret'", "needs a `user`"),
        ("smtp = 'smtp://a'\nto = ['a@b']", "address in `from`"),
        ("smtp = 'smtp://a'\nfrom = 'a@b'", "addresses in `to`"),
        ("smtp = 'smtp://a'\nfrom = 'a@b'\nto = ['x <a@b>']", "addresses in `to`"),
        ("smtp = 'smtp://a'\nfrom = \"a@b\\nBcc: c@d\"\nto = ['a@b']", "address in `from`"),
    ] {
        let words = read(text).expect_err(text);
        assert!(words.contains(says), "{text}: {words}");
        assert!(!words.contains("secret"), "{text}: {words}");
    }
    for (url, path) in [("http://a:4318", "/v1/metrics"), ("https://a/x/y", "/x/y")] {
        let collector = Target::collector(url).expect("a collector");
        assert_eq!((collector.place().path.as_str(), collector.place().tls), (path, url.starts_with("https")));
    }
    assert!(Target::collector("grpc://secret").is_err_and(|it| it.contains("http://") && !it.contains("secret")));
    let long = Alert { webhook: Some(format!("http://a/{}", "x".repeat(3_000))), ..Alert::default() };
    assert!(long.mistake().is_some_and(|words| words.contains("up to 2000")));
}

#[test]
fn fields_are_those_that_are_documented() {
    let [began, over] = both("host b1");
    let want = serde_json::json!({
        "schema": "narrows.fleet-alert/1", "fleet": "site", "state": "began", "number": 7, "element": "host b1",
        "says": "carries 40 % of what it should", "since": "2023-11-14T22:13:20Z", "after_ms": null, "acknowledged": null, "diagnosis": null,
    });
    assert_eq!(json(&began, "site"), want);
    let over = json(&over, "site");
    assert_eq!((over["state"].as_str(), over["after_ms"].as_u64()), (Some("over"), Some(90_000)));
}

#[test]
fn an_alertmanager_knows_the_end_by_the_labels_of_the_beginning() {
    let alerts = alertmanager(&both("host b1"), "site");
    assert_eq!(alerts[0]["labels"], alerts[1]["labels"]);
    assert_eq!(alerts[0]["labels"]["element"], "host b1");
    assert_eq!(alerts[0]["startsAt"], "2023-11-14T22:13:20Z");
    assert!(alerts[0].get("endsAt").is_none());
    assert_eq!(alerts[1]["endsAt"], "2023-11-14T22:14:50Z");
}

#[test]
fn a_mail_of_the_end_belongs_below_that_of_the_beginning() {
    let [began, over] = both("host b1").map(|message| mail(&message, "the site", "n@example.org"));
    assert_eq!(began.id, "<narrows.the-site.1700000000000.7.began@example.org>");
    assert_eq!((began.answers, over.answers), (None, Some(began.id.clone())));
    assert_ne!(began.id, over.id);
    assert_eq!(began.subject, "narrows the site: incident 7: host b1");
    assert_eq!(over.subject, "narrows the site: incident 7 is over after 90.0 s: host b1");
    assert!(began.text.starts_with("incident 7: host b1: carries 40 %"), "{}", began.text);
}

#[test]
fn hostile_names_stay_names() {
    let hostile = format!("\"<!channel>\r\nBcc: all@example.org\r\n\r\n\u{1b}[31m\u{202e}&{}", "ä".repeat(10_000));
    for message in both(&hostile) {
        let mail = mail(&message, &hostile, "n@example.org");
        let chat = chat(&message, &hostile);
        let text = chat["text"].as_str().expect("a text");
        assert!(text.contains("&lt;!channel&gt; ") && !text.contains(['<', '>']), "{text}");
        let json = json(&message, &hostile);
        let alerts = alertmanager(std::slice::from_ref(&message), &hostile);
        let lines = [text, &mail.subject, &mail.id, json["element"].as_str().expect("a name")];
        let lines = lines.into_iter().chain(alerts[0]["labels"]["element"].as_str()).chain(mail.text.lines());
        for line in lines {
            assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line}");
            assert!(line.chars().count() < 1_500, "{line}");
        }
        assert!(!mail.text.lines().any(|line| line.starts_with("Bcc")), "{}", mail.text);
        assert!(mail.id.is_ascii() && !mail.id.contains(' '), "{}", mail.id);
    }
}
