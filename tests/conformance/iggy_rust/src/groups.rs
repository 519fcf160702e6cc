//! GET, CREATE, DELETE, JOIN and LEAVE of consumer groups, and polls of their members.

use crate::scene::{number, refused, Scene, TOPIC};
use iggy::client::{Client, ConsumerGroupClient, ConsumerOffsetClient, MessageClient, SystemClient};
use iggy::consumer::Consumer;
use iggy::consumer_groups::create_consumer_group::CreateConsumerGroup;
use iggy::consumer_groups::delete_consumer_group::DeleteConsumerGroup;
use iggy::consumer_groups::get_consumer_group::GetConsumerGroup;
use iggy::consumer_groups::get_consumer_groups::GetConsumerGroups;
use iggy::consumer_groups::join_consumer_group::JoinConsumerGroup;
use iggy::consumer_groups::leave_consumer_group::LeaveConsumerGroup;
use iggy::consumer_offsets::get_consumer_offset::GetConsumerOffset;
use iggy::consumer_offsets::store_consumer_offset::StoreConsumerOffset;
use iggy::messages::poll_messages::{PollMessages, PollingStrategy};
use iggy::messages::send_messages::Partitioning;
use iggy::models::consumer_group::ConsumerGroupDetails;
use iggy::system::get_me::GetMe;
use iggy::tcp::client::TcpClient;
use std::collections::HashSet;
use std::time::Duration;

const GROUP: u32 = 3;
const CONSUMER_GROUP_NOT_FOUND: u32 = 5000;
const CONSUMER_GROUP_ALREADY_EXISTS: u32 = 5001;
const CONSUMER_GROUP_MEMBER_NOT_FOUND: u32 = 5002;
const INVALID_CONSUMER_GROUP_ID: u32 = 5003;
const LOOKS_MAX: u32 = 500;

pub async fn play(scene: &Scene) {
    let client = scene.with_topic(3).await;
    let create = |consumer_group_id: u32| CreateConsumerGroup {
        stream_id: scene.stream_id(),
        topic_id: number(TOPIC),
        consumer_group_id,
    };
    client.create_consumer_group(&create(GROUP)).await.unwrap();
    assert_eq!(refused(client.create_consumer_group(&create(GROUP))).await, CONSUMER_GROUP_ALREADY_EXISTS);
    assert_eq!(refused(client.create_consumer_group(&create(0))).await, INVALID_CONSUMER_GROUP_ID);
    client.create_consumer_group(&create(9)).await.unwrap();
    let all = GetConsumerGroups { stream_id: scene.stream_id(), topic_id: number(TOPIC) };
    let found = client.get_consumer_groups(&all).await.unwrap();
    let found: Vec<(u32, u32, u32)> =
        found.iter().map(|one| (one.id, one.partitions_count, one.members_count)).collect();
    assert_eq!(found, [(GROUP, 3, 0), (9, 3, 0)]);
    assert_eq!(refused(client.poll_messages(&polling(scene))).await, CONSUMER_GROUP_MEMBER_NOT_FOUND);

    membership(scene, &client).await;
    messages(scene, &client).await;

    let leave = LeaveConsumerGroup { stream_id: scene.stream_id(), topic_id: number(TOPIC), consumer_group_id: GROUP };
    client.leave_consumer_group(&leave).await.unwrap();
    assert_eq!(refused(client.leave_consumer_group(&leave)).await, CONSUMER_GROUP_MEMBER_NOT_FOUND);
    assert!(group(scene, &client).await.members.is_empty());
    let delete =
        DeleteConsumerGroup { stream_id: scene.stream_id(), topic_id: number(TOPIC), consumer_group_id: GROUP };
    client.delete_consumer_group(&delete).await.unwrap();
    assert_eq!(refused(client.delete_consumer_group(&delete)).await, CONSUMER_GROUP_NOT_FOUND);
    let get = get(scene);
    assert_eq!(refused(client.get_consumer_group(&get)).await, CONSUMER_GROUP_NOT_FOUND);
}

fn get(scene: &Scene) -> GetConsumerGroup {
    GetConsumerGroup { stream_id: scene.stream_id(), topic_id: number(TOPIC), consumer_group_id: GROUP }
}

async fn group(scene: &Scene, client: &TcpClient) -> ConsumerGroupDetails {
    client.get_consumer_group(&get(scene)).await.unwrap()
}

async fn join(scene: &Scene, client: &TcpClient) {
    let join = JoinConsumerGroup { stream_id: scene.stream_id(), topic_id: number(TOPIC), consumer_group_id: GROUP };
    client.join_consumer_group(&join).await.unwrap();
}

fn polling(scene: &Scene) -> PollMessages {
    let poll = scene.poll_of(Consumer::group(GROUP), None, PollingStrategy::next(), 10);
    PollMessages { auto_commit: true, ..poll }
}

async fn membership(scene: &Scene, client: &TcpClient) {
    join(scene, client).await;
    let me = client.get_me(&GetMe {}).await.unwrap();
    let joined: Vec<(u32, u32, u32)> =
        me.consumer_groups.iter().map(|one| (one.stream_id, one.topic_id, one.consumer_group_id)).collect();
    assert_eq!(joined, [(scene.stream, TOPIC, GROUP)]);
    let alone = group(scene, client).await;
    assert_eq!((alone.members_count, alone.members[0].id), (1, me.id));
    assert_eq!(alone.members[0].partitions, [1, 2, 3]);

    let mut other = scene.client().await;
    join(scene, &other).await;
    let both = group(scene, client).await;
    assert_eq!(both.members_count, 2);
    let mut shares: Vec<u32> = both.members.iter().map(|one| one.partitions_count).collect();
    shares.sort_unstable();
    assert_eq!(shares, [1, 2]);
    let owned: HashSet<u32> = both.members.iter().flat_map(|one| one.partitions.clone()).collect();
    assert_eq!(owned, HashSet::from([1, 2, 3]));

    other.disconnect().await.unwrap();
    let mut looks = 0;
    while group(scene, client).await.members_count > 1 {
        looks += 1;
        assert!(looks < LOOKS_MAX, "a member that has gone is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn messages(scene: &Scene, client: &TcpClient) {
    for partition in 1..=3 {
        scene.send(client, Partitioning::partition_id(partition), &["first", "second"]).await;
    }
    let mut turns = HashSet::new();
    for _ in 0..3 {
        let polled = client.poll_messages(&polling(scene)).await.unwrap();
        assert_eq!(polled.messages.len(), 2);
        turns.insert(polled.partition_id);
    }
    assert_eq!(turns, HashSet::from([1, 2, 3]), "each poll goes to the next partition");
    let polled = client.poll_messages(&polling(scene)).await.unwrap();
    assert!(polled.messages.is_empty());

    let get = GetConsumerOffset {
        consumer: Consumer::group(GROUP),
        stream_id: scene.stream_id(),
        topic_id: number(TOPIC),
        partition_id: None,
    };
    let stored = client.get_consumer_offset(&get).await.unwrap();
    assert_eq!((stored.partition_id, stored.stored_offset), (polled.partition_id, 1));
    let store = StoreConsumerOffset {
        consumer: Consumer::group(GROUP),
        stream_id: scene.stream_id(),
        topic_id: number(TOPIC),
        partition_id: None,
        offset: 0,
    };
    client.store_consumer_offset(&store).await.unwrap();
    assert_eq!(client.get_consumer_offset(&get).await.unwrap().stored_offset, 0);
}
