//! Spans of requests for an OpenTelemetry collector: OTLP over HTTP, in protobuf (cargo feature `otel`).
//!
//! A record of the access log whose trace is recorded becomes a span of the kind `server`, with the attributes of the semantic
//! conventions for HTTP servers and our own times (`shortline.*`). The SDK's batch processor takes it into a bounded queue,
//! which nobody waits for, and sends from a thread of its own. What the queue has no room for is lost, and the SDK logs that.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
};
use shortline_web::{AccessLog, AccessRecord, Fields, Span};

use crate::otlp::Collector;

/// Spans that wait.
const QUEUE_MAX: usize = 4096;
/// Spans that are sent at a time.
const BATCH_MAX: usize = 512;
/// How long the first of a batch waits, and how long a collector may take.
const DELAY_MAX: Duration = Duration::from_secs(2);
const EXPORT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the end of the server waits for the last batch.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// Exports spans, and passes each record on to an access log.
#[derive(Debug)]
pub struct Spans {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

impl Spans {
    /// Exports to this collector from now on.
    ///
    /// # Errors
    /// The exporter cannot be made.
    pub fn start(collector: &Collector) -> Result<Self, ExporterBuildError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(collector.endpoint())
            .with_timeout(EXPORT_TIME_MAX)
            .build()?;
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_MAX)
            .with_max_export_batch_size(BATCH_MAX)
            .with_scheduled_delay(DELAY_MAX)
            .build();
        let builder = BatchSpanProcessor::builder(exporter);
        let mut processor = builder.with_batch_config(config).build();
        // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say more.
        let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
        let resource = Resource::builder();
        let resource = match named {
            true => resource,
            false => resource.with_service_name("shortline"),
        };
        processor.set_resource(&resource.build());
        Ok(Self {
            processor,
            scope: InstrumentationScope::builder("shortline").build(),
        })
    }

    /// Takes the span of a record, if it is recorded.
    fn take(&self, record: &AccessRecord) {
        if let Some(span) = record.span {
            self.processor.on_end(self.data(span, record));
        }
    }

    fn data(&self, span: Span, record: &AccessRecord) -> SpanData {
        let context = SpanContext::new(
            TraceId::from_bytes(span.trace.to_be_bytes()),
            SpanId::from_bytes(span.span.to_be_bytes()),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        );
        let parent = span.parent.unwrap_or(0);
        SpanData {
            span_context: context,
            parent_span_id: SpanId::from_bytes(parent.to_be_bytes()),
            parent_span_is_remote: span.parent.is_some(),
            span_kind: SpanKind::Server,
            // The conventions want few names, so no target is in it.
            name: record.method.clone().into(),
            start_time: record.time,
            end_time: record.time + record.wait + record.send,
            attributes: attributes(record),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: match record.status {
                500.. => Status::error(""),
                _ => Status::Unset,
            },
            instrumentation_scope: self.scope.clone(),
        }
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        if let Err(error) = self.processor.shutdown_with_timeout(END_TIME_MAX) {
            tracing::warn!("traces: the last ones were not sent: {error}");
        }
    }
}

fn attributes(record: &AccessRecord) -> Vec<KeyValue> {
    let (path, query) = match record.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (record.target.as_str(), None),
    };
    let ms = |time: Duration| time.as_micros() as f64 / 1e3;
    let mut all = vec![
        KeyValue::new("http.request.method", record.method.clone()),
        KeyValue::new("url.scheme", record.tls.map_or("http", |_| "https")),
        KeyValue::new("url.path", path.to_owned()),
        KeyValue::new("http.response.status_code", i64::from(record.status)),
        KeyValue::new(
            "http.response.body.size",
            i64::try_from(record.body_bytes).unwrap_or(i64::MAX),
        ),
        KeyValue::new("network.protocol.name", "http"),
        KeyValue::new(
            "network.protocol.version",
            record
                .version
                .trim_start_matches("HTTP/")
                .trim_end_matches(".0"),
        ),
        KeyValue::new("client.address", record.peer.to_string()),
        KeyValue::new("shortline.request_id", record.request_id.clone()),
        KeyValue::new("shortline.queue_ms", ms(record.queue)),
        KeyValue::new("shortline.send_ms", ms(record.send)),
        KeyValue::new("shortline.complete", record.complete),
    ];
    let mut add = |name: &'static str, value: Option<String>| {
        all.extend(value.map(|value| KeyValue::new(name, value)));
    };
    add("url.query", query.map(str::to_owned));
    add("server.address", record.host.clone());
    add("shortline.site", record.site.clone());
    let Some(backend) = &record.backend else {
        return all;
    };
    add("shortline.backend", backend.address.clone());
    let times = [
        ("shortline.gate_ms", backend.admission),
        ("shortline.backend_head_ms", backend.head),
        ("shortline.backend_ms", backend.whole),
    ];
    for (name, time) in times {
        all.extend(time.map(|time| KeyValue::new(name, ms(time))));
    }
    all
}

/// An access log that exports spans, too.
pub struct Both {
    /// Exports spans.
    pub spans: Arc<Spans>,
    /// Writes lines, if there is an access log.
    pub log: Option<Arc<dyn AccessLog>>,
}

impl AccessLog for Both {
    fn fields(&self) -> &Fields {
        static NONE: Fields = Fields::NONE;
        self.log.as_ref().map_or(&NONE, |log| log.fields())
    }

    fn log(&self, record: AccessRecord) {
        self.spans.take(&record);
        if let Some(log) = &self.log {
            log.log(record);
        }
    }
}
