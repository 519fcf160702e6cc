//! GET_STREAM, GET_STREAMS, CREATE_STREAM, DELETE_STREAM.

use crate::scene::{named, number, refused, Scene};
use iggy::client::{StreamClient, TopicClient};
use iggy::streams::create_stream::CreateStream;
use iggy::streams::delete_stream::DeleteStream;
use iggy::streams::get_stream::GetStream;
use iggy::streams::get_streams::GetStreams;

const STREAM_ID_NOT_FOUND: u32 = 1009;
const STREAM_NAME_NOT_FOUND: u32 = 1010;
const STREAM_ID_ALREADY_EXISTS: u32 = 1011;
const STREAM_NAME_ALREADY_EXISTS: u32 = 1012;
const INVALID_STREAM_ID: u32 = 1014;

pub async fn play(scene: &Scene) {
    let client = scene.client().await;
    let create = |stream_id: u32, name: &str| CreateStream { stream_id, name: name.to_string() };
    client.create_stream(&create(scene.stream, &scene.name())).await.unwrap();
    assert_eq!(refused(client.create_stream(&create(scene.stream, "other"))).await, STREAM_ID_ALREADY_EXISTS);
    let taken = scene.name().to_uppercase();
    assert_eq!(refused(client.create_stream(&create(scene.stream + 1, &taken))).await, STREAM_NAME_ALREADY_EXISTS);
    assert_eq!(refused(client.create_stream(&create(0, "zero"))).await, INVALID_STREAM_ID);

    for stream_id in [scene.stream_id(), named(&scene.name())] {
        let stream = client.get_stream(&GetStream { stream_id }).await.unwrap();
        assert_eq!((stream.id, stream.name), (scene.stream, scene.name()));
        assert_eq!((stream.topics_count, stream.messages_count, stream.size_bytes), (0, 0, 0));
        assert!(stream.created_at > 1_600_000_000_000_000 && stream.topics.is_empty());
    }
    for name in ["t1", "t2"] {
        let topic_id = if name == "t1" { 1 } else { 7 };
        client.create_topic(&scene.new_topic(topic_id, name, 2)).await.unwrap();
    }
    let stream = client.get_stream(&GetStream { stream_id: scene.stream_id() }).await.unwrap();
    let topics: Vec<(u32, &str)> = stream.topics.iter().map(|one| (one.id, one.name.as_str())).collect();
    assert_eq!(topics, [(1, "t1"), (7, "t2")]);
    let all = client.get_streams(&GetStreams {}).await.unwrap();
    assert!(all.iter().any(|one| one.id == scene.stream && one.topics_count == 2));

    client.delete_stream(&DeleteStream { stream_id: scene.stream_id() }).await.unwrap();
    let gone = GetStream { stream_id: number(scene.stream) };
    assert_eq!(refused(client.get_stream(&gone)).await, STREAM_ID_NOT_FOUND);
    let gone = GetStream { stream_id: named(&scene.name()) };
    assert_eq!(refused(client.get_stream(&gone)).await, STREAM_NAME_NOT_FOUND);
    assert_eq!(
        refused(client.delete_stream(&DeleteStream { stream_id: scene.stream_id() })).await,
        STREAM_ID_NOT_FOUND
    );
}
