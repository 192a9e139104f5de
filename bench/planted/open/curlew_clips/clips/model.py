from torch import nn


class CallNet(nn.Module):
    def __init__(self, clip, species, frame=40, width=192):
        super().__init__()
        self.frame = frame
        self.embed = nn.Linear(frame, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, species)

    def forward(self, wave):
        frames = wave.view(len(wave), -1, self.frame)
        states, _ = self.rnn(self.embed(frames).relu())
        return self.out(states.mean(1))
