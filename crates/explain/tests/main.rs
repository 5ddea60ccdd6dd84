mod agrees;
