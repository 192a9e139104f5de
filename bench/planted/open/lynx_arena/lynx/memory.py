import random


class Transition:
    def __init__(self, before, action, reward, after, done, info):
        self.before, self.action, self.reward, self.after, self.done = before, action, reward, after, done
        self.info = info


class Replay:
    def __init__(self, capacity, seed):
        self.capacity, self.items, self.next = capacity, [], 0
        self.dice = random.Random(seed)

    def push(self, transition):
        if len(self.items) < self.capacity:
            self.items.append(transition)
        else:
            self.items[self.next] = transition
        self.next = (self.next + 1) % self.capacity

    def sample(self, count):
        return self.dice.sample(self.items, count)

    def __len__(self):
        return len(self.items)
