//! What scrapers read of a server: over plain HTTP, without a token, at an address of its own.

use super::listen::accept_api;
use super::shared::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use narrows_render::metrics::{CONTENT_TYPE, metrics};
use std::sync::Arc;

/// Answers scrapers for ever.
pub(super) async fn listen(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    accept_api(listener, None, Router::new().route("/metrics", get(scrape)).with_state(shared)).await;
}

async fn scrape(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let agent = shared.config.agent.as_ref().map(|agent| *crate::lock(agent));
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics(&shared.figures(), agent.as_ref()))
}
