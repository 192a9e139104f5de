"""The parish registers as a graph of people: parents know their children, children their parents."""

import random


class Person:
    __slots__ = ("number", "parish", "parents", "children", "traits")

    def __init__(self, number, parish):
        self.number, self.parish = number, parish
        self.parents, self.children, self.traits = [], [], {}


def registers(parishes, generations, size, seed):
    rng = random.Random(seed)
    people, number = [], 0
    for parish in range(parishes):
        older = []
        for generation in range(generations):
            born = []
            for _ in range(size):
                child = Person(number, parish)
                number += 1
                child.traits["born"] = 1600 + 27 * generation + rng.randrange(20)
                if older:
                    for parent in rng.sample(older, 2):
                        child.parents.append(parent)
                        parent.children.append(child)
                born.append(child)
            people.extend(born)
            older = born
    return people


def stroll(person, hops, rng):
    path = [person.number]
    for _ in range(hops):
        near = person.parents if rng.random() < 0.5 and person.parents else person.children or person.parents or [person]
        person = near[int(rng.random() * len(near))]
        path.append(person.number)
    return path
