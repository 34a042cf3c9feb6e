//! The requests of a page for runs of the store.

use super::gate::Visitor;
use super::site::{Shown, Site, Words, download, page, reader, refusal, written};
use crate::server::refusal::Refused;
use crate::server::request::blocking;
use crate::stored::maintenance::{self, page as listed};
use crate::stored::{Content, Filter, Store};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Response;
use narrows_model::Run;
use narrows_model::run::campaign::CampaignReport;
use narrows_model::run::history::HistoryReport;
use narrows_render::{Format, Style, campaign, picture, web};
use std::sync::Arc;

/// Runs of a page of the list.
const LISTED: u64 = 50;
/// Beside something else.
const FEW: u64 = 12;

/// Reads the store on a thread of its own.
async fn with<T: Send + 'static>(
    site: &Site,
    read: impl FnOnce(&Store) -> Result<T, narrows_store::Error> + Send + 'static,
) -> Result<T, Refused> {
    let place = site.store.clone();
    blocking(move || Store::open(&place).and_then(|store| read(&store))).await?.map_err(Refused::failed)
}

/// Runs of a host, or between two; all where none is named.
fn of(hosts: [&str; 2]) -> Filter {
    let [host, peer] = hosts.map(|it| Some(it.to_owned()).filter(|it| !it.is_empty()));
    Filter { host, peer, ..Filter::default() }
}

/// Runs that a host took part in, if there are any.
pub(super) async fn of_host(site: &Site, host: &str) -> Result<Option<HistoryReport>, Refused> {
    if host.is_empty() {
        return Ok(None);
    }
    let filter = of([host, ""]);
    let found = with(site, move |store| listed(store, &filter, 0, FEW, None)).await?;
    Ok(Some(found).filter(|it| !it.runs.is_empty()))
}

/// Runs between two hosts.
pub(super) async fn between(site: &Site, [from, to]: [&str; 2]) -> Result<Option<HistoryReport>, Refused> {
    if from.is_empty() || to.is_empty() {
        return Ok(None);
    }
    let filter = of([from, to]);
    with(site, move |store| listed(store, &filter, 0, LISTED, None)).await.map(Some)
}

/// The id of the run that a reader names, if there is one.
pub(super) async fn named(site: &Site, word: &str) -> Result<Option<String>, Refused> {
    let word = word.to_owned();
    if word.is_empty() {
        return Ok(None);
    }
    with(site, move |store| match store.named(&word) {
        // A date, for example, begins many ids.
        Err(narrows_store::Error::Ambiguous(_)) => Ok(None),
        other => other,
    })
    .await
}

pub(super) async fn list(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let hosts = ["host", "peer"].map(|it| words.get(it));
    let (filter, offset) = (of(hosts), words.number("offset").unwrap_or(0));
    let report = with(&site, move |store| listed(store, &filter, offset, LISTED, None)).await;
    let report = report.map_err(|it| refusal(&site, &visitor, &it))?;
    let name = site.source.name();
    Ok(page(web::runs(&reader(&name, &visitor), &report, hosts)))
}

/// The picture of a diagnosis, a measurement or the effects of a campaign.
fn picture_of(content: &Content) -> Option<String> {
    if let Some(report) = content.get::<CampaignReport>() {
        return report.mean.map(|_| campaign::svg::picture(report));
    }
    let run = content.get::<Run>()?;
    crate::report(run).as_ref().map(picture::picture).or_else(|| Some(crate::measurement(run)?.picture()))
}

/// A run in a format, and the formats that it has; of some it is a picture, too.
async fn run_as(site: &Site, id: &str, form: &str) -> Result<(String, Vec<&'static str>), Refused> {
    let (id, form, kinds) = (id.to_owned(), form.to_owned(), site.kinds);
    let place = site.store.clone();
    let write = move || -> Result<(String, Vec<&'static str>), Refused> {
        let store = Store::open(&place).map_err(Refused::failed)?;
        let found = maintenance::show(&store, &id, kinds).map_err(Refused::failed)?;
        let (_, content) = found.ok_or_else(|| Refused::not_found("run"))?;
        let picture = picture_of(&content);
        if form == "svg" {
            return picture.map(|it| (it, Vec::new())).ok_or_else(|| Refused::not_found("picture of this run"));
        }
        let format = match form.as_str() {
            "json" => Format::Json,
            "csv" => Format::Csv,
            "html" => Format::Html,
            _ => return Err(Refused::not_found("format of a run")),
        };
        let report = content.report().ok_or_else(|| Refused::not_found("measurement in this run"))?;
        let written = |format| report.write(format, Style::default()).map_err(Refused::failed);
        let mut forms = vec!["json"];
        forms.extend(report.about().1.contains(&Format::Csv).then_some("csv"));
        forms.extend(picture.map(|_| "svg"));
        let text = match written(format)? {
            None if format == Format::Html => {
                let wide = Style { full: true, width: 110, ..Style::default() };
                report.write(Format::Text, wide).map_err(Refused::failed)?.map(|it| web::as_text(&it))
            }
            text => text,
        };
        text.map(|text| (text, forms)).ok_or_else(|| Refused::not_found("format of this run"))
    };
    site.make(write).await
}

pub(super) async fn one(State(site): State<Arc<Site>>, visitor: Visitor, words: Words) -> Shown {
    let id = words.get("id");
    let (document, forms) = run_as(&site, id, "html").await.map_err(|it| refusal(&site, &visitor, &it))?;
    let of = |form: &&str| web::address(&format!("run.{form}"), &[("id", id)]);
    let names: Vec<String> = forms.iter().map(|it| it.to_uppercase()).collect();
    let links: Vec<(&str, String)> = names.iter().map(String::as_str).zip(forms.iter().map(of)).collect();
    let name = site.source.name();
    Ok(page(web::report(&reader(&name, &visitor), &format!("Run {id}"), &document, &links)))
}

pub(super) async fn one_as(
    State(site): State<Arc<Site>>,
    Path(form): Path<String>,
    _: Visitor,
    words: Words,
) -> Result<Response<Body>, Refused> {
    let kind = match form.as_str() {
        "json" => "application/json",
        "csv" => "text/csv; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return Err(Refused::not_found("format of a run")),
    };
    let (text, _) = run_as(&site, words.get("id"), &form).await?;
    Ok(download(kind, &format!("{}.{form}", words.get("id")), text))
}

/// Two runs side by side, and what differs where both are diagnoses.
pub(super) async fn compare(State(site): State<Arc<Site>>, visitor: Visitor, uri: axum::http::Uri) -> Shown {
    let refused = |it: Refused| refusal(&site, &visitor, &it);
    let query = uri.query().unwrap_or_default();
    let ids: Vec<String> = form_urlencoded::parse(query.as_bytes())
        .filter(|(key, value)| key == "id" && !value.is_empty())
        .map(|(_, value)| value.into_owned())
        .take(3)
        .collect();
    let [a, b] = &ids[..] else { return Err(refused(Refused::bad("mark two runs"))) };
    let [one, other] = [run_as(&site, a, "html").await, run_as(&site, b, "html").await];
    let ((one, _), (other, _)) = (one.map_err(refused)?, other.map_err(refused)?);
    let (kinds, both) = (site.kinds, [a.clone(), b.clone()]);
    let diff = with(&site, move |store| {
        let read = |id: &String| {
            let content = maintenance::show(store, id, kinds)?.map(|(_, content)| content);
            Ok::<_, narrows_store::Error>(content.and_then(Content::take::<Run>))
        };
        let (Some(a), Some(b)) = (read(&both[0])?, read(&both[1])?) else { return Ok(None) };
        Ok(narrows_views::diff::of_runs(&a, &b).ok())
    });
    let diff = diff.await.map_err(refused)?.map(|it| written(&it, Format::Html)).transpose().map_err(refused)?;
    let name = site.source.name();
    let sides = [(a.as_str(), one.as_str()), (b.as_str(), other.as_str())];
    Ok(page(web::side_by_side(&reader(&name, &visitor), sides, diff.as_deref())))
}
